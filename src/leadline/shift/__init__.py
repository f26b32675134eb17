"""Why a target differs from the source: what is learned of the source, explanations, judgement, intervals."""
