internal import StallModel
