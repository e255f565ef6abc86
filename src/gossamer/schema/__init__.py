"""The .tflite file format: enums, tables and unions, as the published schema (version 3) names them."""

from gossamer.schema.enums import *  # noqa: F403 - the schema's names are this package's names
from gossamer.schema.fields import Field as Field
from gossamer.schema.fields import Table as Table
from gossamer.schema.fields import Union as Union
from gossamer.schema.options import *  # noqa: F403
from gossamer.schema.tables import *  # noqa: F403
