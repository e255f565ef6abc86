"""Models of other formats. So far: what reads those formats (`gossamer.convert.sources`)."""
