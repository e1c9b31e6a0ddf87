# %% setup
from d2l_compat import @MODULE@ as d2l
@IMPORT@

device = @DEVICE@

# %% sum
print(f"sum: {float(d2l.reduce_sum(d2l.ones((2, 3)))):.1f}")

# %% curve
d2l.plot([0, 1, 2], [[0, 1, 4]], xlabel="x", legend=["@TITLE@"])

# %% words
print("three")
