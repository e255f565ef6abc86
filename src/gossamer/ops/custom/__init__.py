"""The custom operators that ship, one file each, named after the custom code."""
