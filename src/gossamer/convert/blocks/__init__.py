"""What several operators of several sources become, as functions of a graph: one file for each family.

They take values and plain numbers and return values. TFLite's conventions hold: pictures are NHWC, filters OHWI,
depthwise ones 1HWC.
"""
