"""The language of a text, told by its script and its commonest words; and the stemmer of each language.

A guess is needed only to pick a stemmer and to know whether a model speaks the language, so a few dozen
function words per language do: no model, no data file, microseconds per text. They also weigh little in a query.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import lcm
from struct import Struct

import regex
import Stemmer

FUNCTION_WORDS = {
    "en": """
the of and to in is that it was for on are as with his they at be this from have or by one had
not but what all were when we there can an your which their said if do will each about how up
out them then she many some so these would other into has more her two like him see could no
make than been its who now did get may over any my me you i he a our where why whom does doing
being am us hers here very just only own same too such after before between both during until
while those because through once again further off down under above most few nor ours yours
theirs""",
    "de": """
der die das und ist in zu den von mit sich des auf für nicht ein eine einer eines einem einen
dem als auch es an werden aus er hat dass sie nach wird bei um am sind noch wie über so zum
haben nur oder aber vor zur bis mehr durch man sein wurde sei wenn kann war was wer wo wann
warum welche welcher welches ihre ihr wir ich du im vom unter gegen hatte""",
    "fr": """
le la les de des du un une et est en que qui dans pour pas sur au aux par plus avec ce cette ces
son sa ses il elle ils elles on nous vous je ne se sont été être ou où mais comme tout leur
leurs si fait était à même quel quelle quand comment pourquoi dont y""",
    "es": """
el la los las de del que y en un una es por con no para su sus se al lo como más o pero le ya
este esta sí porque entre cuando muy sin sobre también me hasta hay donde quien desde todo nos
durante todos uno les ni contra otros ese eso qué cuál cómo cuándo dónde fue son era""",
    "it": """
il lo la i gli le di a da in con su per tra fra un uno una e che è non si sono della del dei
delle dello nel nella al alla come più ma anche se o questo questa quello era ha hanno essere
suo sua cui chi cosa quando dove perché""",
    "pt": """
o a os as de do da dos das em no na nos nas um uma e é que para por com não se mais como mas ao
à foi são ou seu sua também pelo pela até isso ela ele entre era depois sem mesmo qual quando
onde quem""",
    "nl": """
de het een en van in is dat op te zijn met voor niet aan er om ook als maar door bij of uit naar
dan nog wordt over tot heeft werd hij zij ze ik je wat hoe wie waar wanneer waarom deze dit die
hun worden kan""",
    "sv": """
och att det i en på är av för med den till som ett inte om har de var han hon jag vi från men
ska kan när eller så vad hur vem varför mycket också efter vid mot""",
    "no": """
og i det er på en et til av for at med som den har ikke om var de fra men han hun jeg vi seg kan
skal vil når eller hva hvor hvem hvorfor også etter ved mot ble""",
    "da": """
og i det er på en et til af for at med som den har ikke om var de fra men han hun jeg vi sig kan
skal vil når eller hvad hvor hvem hvorfor også efter ved mod blev""",
    "fi": """
ja on ei se että hän oli ovat kun myös mutta tai niin kuin joka jotka mitä missä miksi kuka sen
hänen olla ole vain jos nyt mukaan jälkeen""",
    "hu": """
a az és hogy nem is egy van volt meg ez azt de csak már mint még vagy aki ami ha el kell lesz
után között mi ki hol""",
    "ro": """
și de la în a cu pe pentru că este din nu o un mai care sunt ce au fost sau prin dar ale lui să
fi ca după unde când""",
    "tr": """
ve bir bu da de için ile olarak çok daha olan gibi en ne o sonra kadar var ama ise değil mi kim
nerede nasıl neden""",
    "pl": """
w i na z do się nie że to jest o jak po co za od ale przez dla są był była tym tego oraz czy gdy
które który może""",
    "cs": """
a v se na je že s z do o to i k ve za by jako pro jsou ale si jeho po tak byl když nebo co kde
kdo proč také""",
    "id": """
yang dan di dari untuk dengan ini pada adalah tidak dalam itu ke oleh akan juga sebagai karena
tersebut ada atau apa siapa kapan dimana mengapa bagaimana""",
    "ca": """
el la els les de del i en que un una és per amb no es al com més però seu també o són va ser on
quan qui""",
    "lt": """
ir yra į kad iš su kaip bet tai buvo ar už apie po jo jos nuo prie kas kur kada kodėl""",
    "et": """
ja on ei see et oli ta kui ka aga või mis kes oma mida kus millal miks""",
    "eu": """
eta da ez bat du dira zen izan ere edo baina hau hori zer nor non noiz""",
    "ga": """
agus an na ar i is le do go bhí sé sí ní ach atá seo sin cad cé""",
    "sr": """
i u je da se na su za od sa kao što ne ili ali bi koji koja iz do po šta ko gde kada""",
    "ru": """
и в не на что с как по это из у за от но он она они для же бы так был была было о к до или если
его её их мы вы я ты при чем кто где когда почему какой какая который""",
    "uk": """
і в не на що з як до це та за від але він вона вони для є був була було про або якщо його її хто
де коли чому""",
    "bg": """
и в на не да от за се с по е че като са до при или но си което който кой къде кога защо""",
    "ar": """
في من على إلى الى عن أن ان إن هذا هذه ذلك تلك التي الذي الذين كان كانت يكون تكون هو هي هم هن ما
ماذا لماذا متى أين اين كيف كم هل أي اي مع بين بعد قبل عند لا لم لن قد ثم أو او و كل بعض غير حتى
إذا اذا لو كما لكن أيضا ايضا منذ خلال حول ضد تحت فوق أمام وراء بسبب مثل عندما حيث لقد ليس ليست
كانوا تم يتم به بها له لها منه منها فيه فيها عليه عليها إليه إليها أنه أنها الى""",
    "el": """
ο η το οι τα του της των τον την και να σε με για από που είναι ήταν θα δεν δε μια ένα ένας αυτό
αυτή αυτός στο στη στην στον στους στις στα ως ότι όταν πώς πού ποιος ποια ποιο τι γιατί ή αλλά
αν μετά πριν κατά προς μου σου μας σας τους""",
    "hi": """
के का की है में से को और पर यह वह हैं था थी थे एक ने कि जो भी तो ही लिए कर या नहीं क्या कौन कब
कहाँ क्यों कैसे कितने इस उस अपने साथ तक बाद द्वारा गया किया हो रहा होता""",
}


_SCRIPTS = {
    "zh": r"\p{Han}",
    "ja": r"[\p{Hiragana}\p{Katakana}]",
    "ko": r"\p{Hangul}",
    "th": r"\p{Thai}",
    "ar": r"\p{Arabic}",
    "he": r"\p{Hebrew}",
    "el": r"\p{Greek}",
    "hi": r"\p{Devanagari}",
    "ta": r"\p{Tamil}",
    "hy": r"\p{Armenian}",
    "ru": r"\p{Cyrillic}",
}

_STEMMERS = {
    "ar": "arabic", "hy": "armenian", "eu": "basque", "ca": "catalan", "cs": "czech", "da": "danish", "nl": "dutch",
    "en": "english", "et": "estonian", "fi": "finnish", "fr": "french", "de": "german", "el": "greek", "hi": "hindi",
    "hu": "hungarian", "id": "indonesian", "ga": "irish", "it": "italian", "lt": "lithuanian", "no": "norwegian",
    "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "es": "spanish",
    "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip

UNKNOWN = "und"
LANGUAGES = frozenset(_STEMMERS)
SAMPLE = 800
"""Characters that tell the language of a text: enough function words for a verdict, however long it is."""
_LEAST_SHARE = 0.08  # of all words: prose has four times as many function words, code and tables fewer
_NOT_LATIN = regex.compile(r"[^\P{L}\p{Latin}]")

_COUNTS = Struct(f"<{len(FUNCTION_WORDS)}I")
_CODES = tuple(FUNCTION_WORDS)


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the commonest words of a language; none where it is not known."""
    return frozenset(FUNCTION_WORDS.get(language, "").split())


@cache  # most searches need no language to be told, and it is a megabyte
def _votes() -> tuple[int, Mapping[str, int]]:
    """Return a whole vote, and for each word its votes, 32 bits for each language.

    A word of many languages says little of any.
    """
    spoken: dict[str, list[int]] = {}
    for place, words in enumerate(FUNCTION_WORDS.values()):
        for word in words.split():
            if len(word) > 1:  # single letters are anyone's
                spoken.setdefault(word, []).append(place)
    vote = lcm(*map(len, spoken.values()))
    return vote, {word: sum(vote // len(places) << 32 * place for place in places) for word, places in spoken.items()}


def detect(text: str) -> str:
    """Return the language of a text as an ISO 639-1 code, or "und" when neither its script nor its words tell."""
    sample = text[:SAMPLE]
    if not sample.isascii():
        script = _by_script(sample)
        if script is not None:
            return script
    return _by_words(sample)


def _by_script(sample: str) -> str | None:
    others = len(_NOT_LATIN.findall(sample))
    if not others or others * 3 < sum(map(str.isalpha, sample)):
        return None
    counts = {language: len(pattern.findall(sample)) for language, pattern in _scripts()}
    if counts["ja"] * 20 > counts["zh"]:
        counts["ja"] += counts["zh"]  # Japanese writes Han characters too; kana tell it from Chinese
    language, count = max(counts.items(), key=lambda pair: pair[1])
    if count * 2 < others:
        return UNKNOWN
    if language == "ru":
        words = _by_words(sample)
        return words if words in ("uk", "bg", "sr") else "ru"
    return language


@cache
def _scripts() -> list[tuple[str, regex.Pattern[str]]]:
    return [(language, regex.compile(pattern)) for language, pattern in _SCRIPTS.items()]


def _by_words(sample: str) -> str:
    words = sample.lower().split()
    vote, votes_by_word = _votes()
    votes = _COUNTS.unpack(sum(filter(None, map(votes_by_word.get, words))).to_bytes(_COUNTS.size, "little"))
    *_, second, most = sorted(votes)
    if not most or most <= second * 1.2 or most < vote * max(0.5, _LEAST_SHARE * len(words)):
        return UNKNOWN
    return _CODES[votes.index(most)]


@cache
def stemmer(language: str) -> Stemmer.Stemmer | None:
    """Return the Snowball stemmer of a language, or None where there is none. It keeps state: one thread at a time."""
    algorithm = _STEMMERS.get(language)
    return Stemmer.Stemmer(algorithm, 0) if algorithm else None  # no cache: who asks remembers


def stemmed_as(language: str, otherwise: str) -> str:
    """Return the language whose stems a text gets: its own, or `otherwise` where that has no stemmer.

    Chinese or Thai has no endings, but English words stand in it as well, and are asked for by their stems.
    """
    return language if language in LANGUAGES else otherwise


def code_of(name: str) -> str:
    """Return the ISO 639-1 code of a language that is named in English or by its code; UNKNOWN where it is neither."""
    lowered = name.strip().lower()
    if lowered in LANGUAGES:
        return lowered
    return next((code for code, english in _STEMMERS.items() if english == lowered), UNKNOWN)
