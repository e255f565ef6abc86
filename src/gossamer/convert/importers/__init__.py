"""From what a source holds to graphs: one file for each kind of source. Each walks the operators in an order in which
they can run and has each lowered; ``import_source(source, request)`` gives `gossamer.convert.request.Imported`."""
