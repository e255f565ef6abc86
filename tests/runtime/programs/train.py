"""On-device training as its guide shows it: signatures that share variables."""

import sys

import numpy as np
from ai_edge_litert.interpreter import Interpreter

interpreter = Interpreter(sys.argv[1])
signatures = interpreter.get_signature_list()
for key in sorted(signatures):
    print(key, signatures[key]["inputs"], signatures[key]["outputs"])
add = interpreter.get_signature_runner("add")
read = interpreter.get_signature_runner("read")
for name, details in add.get_input_details().items():
    print(name, details["shape"].tolist(), details["dtype"].__name__)
for epoch in range(3):
    result = add(x=np.array([epoch, 1], dtype=np.float32))
    print(epoch, result["sum"].tolist())
try:
    read(x=np.zeros(1, np.float32))
except ValueError as e:
    print("ValueError", "expected 0 vs provided 1" in str(e))
