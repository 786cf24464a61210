"""`anabranch demo`: StreamCloud's call-record fraud detection on generated streams."""
