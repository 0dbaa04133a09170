"""Decides a staged rollout of a variant B against A: offline ranking, judged answers, then a share of live traffic.

The first two stages stop a variant that is significantly worse. The third one looks again after every answer, so it
uses confidence sequences (`core.drift.bands`), which are valid at all looks at once: one for each variant and metric,
whose difference decides. The risk 1 - confidence is divided by the number of metrics and by two variants.

Live, B passes if a loss above the margin is excluded, and is stopped if it is proven worse. The user metric decides
where feedback is logged, since a variant can win offline and lose with users; scores of the judge can still stop it.
"""
