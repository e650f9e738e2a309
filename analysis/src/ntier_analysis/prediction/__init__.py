"""What a model of the measured demands predicts. Values in, values out."""
