"""Estimators and metrics of scikit-learn on tensors: `array_api_dispatch` keeps the data and the results tensors."""

import numpy as np
import sklearn
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, confusion_matrix, mean_squared_error, r2_score, roc_auc_score
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler

import minifuse as mf


def results(x, y, target):
    """Return the results of some estimators and metrics."""
    pipeline = make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge(solver="svd")).fit(x, target)
    prediction, scores = pipeline.predict(x), x[:, 0] + x[:, 1]
    train, test = train_test_split(x, random_state=0)
    yield from (
        MinMaxScaler().fit_transform(x),
        PCA(2, svd_solver="full").fit(x).explained_variance_,
        prediction,
        train,
        test,
    )
    for model in (LinearDiscriminantAnalysis(), GaussianNB()):
        yield model.fit(x, y).predict(x)
        yield cross_val_score(model, x, y, cv=3)
    yield mean_squared_error(target, prediction), r2_score(target, prediction), roc_auc_score(y, scores)
    yield accuracy_score(y, y), confusion_matrix(y, y)[1, 1]


def main():
    """Compare with NumPy's arrays."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4)) * [1, 2, 3, 4]
    y = (x[:, 0] + rng.normal(size=60) > 0).astype("int64")
    target = x @ [1.0, 2.0, 3.0, 4.0] + 1
    expected = [*results(x, y, target)]
    with sklearn.config_context(array_api_dispatch=True):
        found = [*results(mf.tensor(x), mf.tensor(y), mf.tensor(target))]
    for a, b in zip(found, expected, strict=True):
        assert isinstance(a, mf.Tensor) or not isinstance(b, np.ndarray) or len(b) == 3, type(a)
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6, atol=1e-6)


if __name__ == "__main__":
    main()
