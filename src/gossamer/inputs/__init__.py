"""Files into arrays that fit the inputs of a model: pictures, sounds, arrays, and whole sets of samples."""
