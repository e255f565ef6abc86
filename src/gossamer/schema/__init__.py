"""The .tflite file format: enums, tables and unions, as the published schema (version 3) names them."""

from gossamer.schema.enums import *
from gossamer.schema.fields import Field as Field
from gossamer.schema.fields import Table as Table
from gossamer.schema.fields import Union as Union
from gossamer.schema.options import *
from gossamer.schema.tables import *
