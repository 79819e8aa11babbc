"""Pure arithmetic on arrays: fragments, weights, merge rules, outer optimisers, codecs, folds."""
