"""Run searches as jobs of HTCondor, and retrain, evaluate and publish the best models by DAGMan."""
