"""What ``gossamer report`` writes: the facts of a model as one JSON object, and the page that shows them."""
