"""What the detectors would have done: `backtest` over past scores, `plan` for rates of sampling."""
