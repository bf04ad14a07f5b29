"""The commonest words of each language: what tells languages apart, and what weighs little in a query.

A module and not a data file: every process needs them, and compiled they cost nothing to read.
"""

from __future__ import annotations

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
