"""The codec's stage: first a plain autoencoder, then a codebook that starts amid its vectors.

From the reference's random codebook all but a handful of codes stay unused (docs/training.md).
Legend: B batch, T frames, F frames of a crop, M mels, N codes, V vectors, K codebook, C width.
"""

from collections.abc import Mapping

import tensorflow as tf

from myxtts.audio import Draw, length_mask, step_key, uniform
from myxtts.batch import Tensors
from myxtts.codec import CodebookState, Codec, chosen, followed, k_means, revived, usage
from myxtts.config import Config, DvaeStageConfig
from myxtts.features import Extract, feature_extractor
from myxtts.layers import Precision
from myxtts.learner import Lesson, Moment, Pictures, Variables
from myxtts.optimizer import Habits
from myxtts.stages.stage import Materials, habits_of
from myxtts.weights import load_weights, named_weights

FRAMES_PER_CODE = 4
DRAWN = 256
"""Vectors of each batch that may become codes."""
KEPT_PER_CODE = 8
"""Vectors that k-means has for each code, where the plain updates give so many."""


class DvaeStage:
    """Mels come from the data device; the codec learns on the model device."""

    name = "dvae"
    part = "codec"

    def __init__(self, config: Config, materials: Materials, precision: Precision) -> None:
        self._config = config
        self._materials = materials
        self._precision = precision

    @property
    def habits(self) -> Habits:
        """How its optimizer works."""
        betas = self._config.stages.dvae.betas
        return habits_of(self._config.training, betas, self._precision)

    @property
    def steps(self) -> int | None:
        """How long it learns, where its own settings say."""
        return self._config.stages.dvae.steps

    @property
    def rate(self) -> float:
        """Its highest learning rate, where no other is named."""
        return self._config.stages.dvae.lr

    def features(self, _device: str, *, judging: bool = False) -> Extract:
        """A crop of each clip's mel, or the whole mel of a clip that judges."""
        data, seed = self._config.data, self._config.training.seed
        whole = feature_extractor(data, seed, self._materials.mel_stats_M, judging=judging)
        frames = self._config.stages.dvae.crop_frames

        def crops(tensors: Tensors, number: tf.Tensor) -> Tensors:
            made = whole(tensors, number)
            mel_BTM, frames_B = made["mel"], tf.cast(made["frames"], tf.int32)
            frames_B *= tf.cast(made["weights"] > 0, tf.int32)
            if not judging:
                mel_BTM, frames_B = _cropped(mel_BTM, frames_B, frames, step_key(seed, number))
            heard = {"frames": tf.cast(frames_B, tf.int64), "weights": made["weights"]}
            return {"mel": mel_BTM, **heard}

        return crops

    def student(self, device: str) -> "DvaeStudent":
        """The codec, from what is there or from random numbers fit to the data's mean."""
        with tf.device(device):
            codec = Codec(self._config.model.codec, self._precision)
            settings, start = self._config.stages.dvae, self._materials.start
            if start:
                load_weights(codec, start)
            elif self._materials.mel_mean_M is not None:
                codec.expect(self._materials.mel_mean_M)
            plain = 0 if start else settings.plain_steps
            return DvaeStudent(codec, settings, plain)


class DvaeStudent:
    """A codec that learns; `plain` updates come before its codebook."""

    def __init__(self, codec: Codec, settings: DvaeStageConfig, plain: int) -> None:
        self.codec = codec
        self._settings = settings
        self._plain = plain
        self._codes, width = codec.codebook.vectors.shape
        # Filled by the plain updates, oldest out first.
        self._vectors = tf.Variable(tf.zeros([KEPT_PER_CODE * self._codes, width]), trainable=False)

    @property
    def players(self) -> Mapping[str, Variables]:
        """One; the codebook has no gradients."""
        learned = {id(v) for v in self.codec.trainable_variables}
        return {"codec": {n: v for n, v in named_weights(self.codec).items() if id(v) in learned}}

    @property
    def state(self) -> Variables:
        """The codebook, and until it begins the vectors that it will begin with."""
        book = {n: v for n, v in named_weights(self.codec).items() if n.startswith("codebook/")}
        return {**book, "vectors": self._vectors} if self._plain else book

    def learn(self, features: Tensors, moment: Moment) -> Lesson:
        """The mel as told again, and the pull to the codes once there are any."""
        plain = moment.step <= self._plain
        vectors_BNC, codes_BN, chosen_BNC = self._encoded(features["mel"])
        off_BNC = tf.where(plain, 0.0, chosen_BNC - vectors_BNC)
        # Straight through: the decoder hears the codes, its gradient goes on to the encoder.
        heard_BNC = vectors_BNC + tf.stop_gradient(off_BNC)
        whole = self._errors(features, heard_BNC)
        counts_BN = self._counts(features, codes_BN)
        error_BN = tf.reduce_mean(tf.square(tf.stop_gradient(chosen_BNC) - vectors_BNC), -1)
        commitment = _mean(error_BN, counts_BN)
        loss = whole + tf.where(plain, 0.0, self._settings.commitment * commitment)
        used, perplexity = usage(self.codec.codebook.state.counts_K, self._settings.revive_below)
        scalars = {"loss": loss, "reconstruction": whole, "commitment": commitment}
        scalars |= {"codes_used": used, "perplexity": perplexity}
        likely_BN = tf.where(plain, counts_BN, counts_BN * error_BN)
        return Lesson(
            {"codec": loss},
            scalars,
            dict(
                zip(("counts", "sums"), self._chosen(vectors_BNC, codes_BN, counts_BN), strict=True)
            ),
            {"vectors": _drawn(vectors_BNC, likely_BN, moment.key)},
            tf.reduce_sum(features["weights"]),
        )

    def absorb(self, means: Tensors, samples: Tensors, moment: Moment) -> None:
        """Gathers vectors, starts the codebook amid them, then lets it follow."""
        book = self.codec.codebook
        state = followed(book.state, means["counts"], means["sums"], self._settings.decay)
        if self._plain:
            kept_VC = tf.concat([self._vectors, samples["vectors"]], 0)[-self._vectors.shape[0] :]
            gathering = moment.step <= self._plain
            self._vectors.assign(tf.where(gathering, kept_VC, self._vectors))
            state = tf.cond(
                moment.step == self._plain,
                lambda: self._begun(kept_VC, tf.reduce_sum(means["counts"]), moment),
                lambda: CodebookState(
                    *(tf.where(gathering, a, b) for a, b in zip(book.state, state, strict=True))
                ),
            )
        settings = self._settings
        due = tf.logical_and(
            moment.step % settings.revive_every == 0,
            tf.logical_and(moment.step > self._plain, moment.share < settings.revive_until),
        )
        book.assign(
            tf.cond(
                due,
                lambda: revived(state, samples["vectors"], settings.revive_below),
                lambda: state,
            )
        )

    def judge(self, features: Tensors) -> Lesson:
        """Through the codes."""
        _, codes_BN, chosen_BNC = self._encoded(features["mel"])
        error = self._errors(features, chosen_BNC)
        counts_K, _ = chosen(chosen_BNC, codes_BN, self._codes, self._counts(features, codes_BN))
        used = tf.reduce_mean(tf.cast(counts_K > 0, tf.float32))
        scalars = {"loss": error, "codes_in_batch": used}
        return Lesson({"codec": error}, scalars, {}, {}, tf.reduce_sum(features["weights"]))

    def pictures(self, features: Tensors) -> Pictures:
        """Each mel, and as the decoder tells it from its codes."""
        mel_BTM = features["mel"]
        _, _, chosen_BNC = self._encoded(mel_BTM)
        told_BTM = tf.cast(self.codec.decoder(chosen_BNC), tf.float32)
        return Pictures(mel_BTM, told_BTM[:, : mel_BTM.shape[1]], features["frames"])

    def _encoded(self, mel_BTM: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        vectors_BNC = tf.cast(self.codec.encoder(mel_BTM), tf.float32)
        codes_BN = self.codec.codebook.codes(vectors_BNC)
        return vectors_BNC, codes_BN, self.codec.codebook.look_up(codes_BN)

    def _errors(self, features: Tensors, heard_BNC: tf.Tensor) -> tf.Tensor:
        """Mean squared error over the frames that are sound."""
        mel_BTM = features["mel"]
        told_BTM = tf.cast(self.codec.decoder(heard_BNC), tf.float32)[:, : mel_BTM.shape[1]]
        error_BT = tf.reduce_mean(tf.square(told_BTM - mel_BTM), -1)
        return _mean(
            error_BT, tf.cast(length_mask(features["frames"], mel_BTM.shape[1]), tf.float32)
        )

    def _counts(self, features: Tensors, codes_BN: tf.Tensor) -> tf.Tensor:
        """1 for the codes whose four frames are all sound."""
        whole_B = features["frames"] // FRAMES_PER_CODE
        return tf.cast(length_mask(whole_B, codes_BN.shape[1]), tf.float32)

    def _chosen(
        self, vectors_BNC: tf.Tensor, codes_BN: tf.Tensor, counts_BN: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        return chosen(vectors_BNC, codes_BN, self._codes, counts_BN)

    def _begun(self, vectors_VC: tf.Tensor, count: tf.Tensor, moment: Moment) -> CodebookState:
        return k_means(vectors_VC, self._codes, count, moment.key)


def _cropped(
    mel_BTM: tf.Tensor, frames_B: tf.Tensor, frames: int, key: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """So many frames from anywhere in each clip; a shorter clip's are followed by padding."""
    longest = mel_BTM.shape[1]
    mel_BTM = tf.pad(mel_BTM, [[0, 0], [0, max(0, frames - longest)], [0, 0]])
    room_B = tf.maximum(frames_B - frames, 0)
    share_B = uniform(key, Draw.CROP_START, [mel_BTM.shape[0]])
    start_B = tf.minimum(tf.cast(share_B * tf.cast(room_B + 1, tf.float32), tf.int32), room_B)
    places_BF = start_B[:, None] + tf.range(frames)
    return tf.gather(mel_BTM, places_BF, batch_dims=1), tf.minimum(frames_B, frames)


def _drawn(vectors_BNC: tf.Tensor, likely_BN: tf.Tensor, key: tf.Tensor) -> tf.Tensor:
    """Some of the vectors, each as likely as it says."""
    vectors_VC = tf.stop_gradient(tf.reshape(vectors_BNC, [-1, vectors_BNC.shape[-1]]))
    likely_V = tf.stop_gradient(tf.reshape(likely_BN, [-1]))
    total_V = tf.cumsum(likely_V)
    wanted_D = uniform(key, Draw.VECTORS, [DRAWN]) * total_V[-1]
    places_D = tf.searchsorted(total_V, wanted_D, side="right")
    return tf.gather(vectors_VC, tf.minimum(places_D, tf.shape(vectors_VC)[0] - 1))


def _mean(values: tf.Tensor, counts: tf.Tensor) -> tf.Tensor:
    return tf.math.divide_no_nan(tf.reduce_sum(values * counts), tf.reduce_sum(counts))
