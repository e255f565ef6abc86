"""Scripts of characters: Unicode's Scripts.txt with ICU's numbers (UScriptCode), as ICU has them in TensorFlow 2.21."""

from __future__ import annotations

import base64
import zlib
from functools import cache
from typing import Any

import numpy as np

from gossamer.arrays import NDArray

_NAMES = """
Common=0 Inherited=1 Arabic=2 Armenian=3 Bengali=4 Bopomofo=5 Cherokee=6 Coptic=7 Cyrillic=8 Deseret=9 Devanagari=10
Ethiopic=11 Georgian=12 Gothic=13 Greek=14 Gujarati=15 Gurmukhi=16 Han=17 Hangul=18 Hebrew=19 Hiragana=20 Kannada=21
Katakana=22 Khmer=23 Lao=24 Latin=25 Malayalam=26 Mongolian=27 Myanmar=28 Ogham=29 Old_Italic=30 Oriya=31 Runic=32
Sinhala=33 Syriac=34 Tamil=35 Telugu=36 Thaana=37 Thai=38 Tibetan=39 Canadian_Aboriginal=40 Yi=41 Tagalog=42
Hanunoo=43 Buhid=44 Tagbanwa=45 Braille=46 Cypriot=47 Limbu=48 Linear_B=49 Osmanya=50 Shavian=51 Tai_Le=52 Ugaritic=53
Buginese=55 Glagolitic=56 Kharoshthi=57 Syloti_Nagri=58 New_Tai_Lue=59 Tifinagh=60 Old_Persian=61 Balinese=62 Batak=63
Brahmi=65 Cham=66 Egyptian_Hieroglyphs=71 Pahawh_Hmong=75 Old_Hungarian=76 Javanese=78 Kayah_Li=79 Lepcha=82
Linear_A=83 Mandaic=84 Meroitic_Hieroglyphs=86 Nko=87 Old_Turkic=88 Old_Permic=89 Phags_Pa=90 Phoenician=91 Miao=92
Vai=99 Cuneiform=101 Carian=104 Tai_Tham=106 Lycian=107 Lydian=108 Ol_Chiki=109 Rejang=110 Saurashtra=111
SignWriting=112 Sundanese=113 Meetei_Mayek=115 Imperial_Aramaic=116 Avestan=117 Chakma=118 Kaithi=120 Manichaean=121
Inscriptional_Pahlavi=122 Psalter_Pahlavi=123 Inscriptional_Parthian=125 Samaritan=126 Tai_Viet=127 Bamum=130 Lisu=131
Old_South_Arabian=133 Bassa_Vah=134 Duployan=135 Elbasan=136 Grantha=137 Mende_Kikakui=140 Meroitic_Cursive=141
Old_North_Arabian=142 Nabataean=143 Palmyrene=144 Khudawadi=145 Warang_Citi=146 Mro=149 Nushu=150 Sharada=151
Sora_Sompeng=152 Takri=153 Tangut=154 Anatolian_Hieroglyphs=156 Khojki=157 Tirhuta=158 Caucasian_Albanian=159
Mahajani=160 Ahom=161 Hatran=162 Modi=163 Multani=164 Pau_Cin_Hau=165 Siddham=166 Adlam=167 Bhaiksuki=168 Marchen=169
Newa=170 Osage=171 Masaram_Gondi=175 Soyombo=176 Zanabazar_Square=177 Dogra=178 Gunjala_Gondi=179 Makasar=180
Medefaidrin=181 Hanifi_Rohingya=182 Sogdian=183 Old_Sogdian=184 Elymaic=185 Nyiakeng_Puachue_Hmong=186 Nandinagari=187
Wancho=188 Chorasmian=189 Dives_Akuru=190 Khitan_Small_Script=191 Yezidi=192
"""

_RUNS = """
c-p0uYm8l0701ti?Y+<Yp8J?Pk9%k4-rHg3&UD_Lb~@7+Gi_yP(`H(z_CX10BCr%H4_ge60Fw$-V!@&ju+dVbBB&8iX|1AEqv3-w@q-
dg3?KYzV)$Ux51P34xpUhNwA6(A`=5R8*?XV0)>(V)y|L_;$B>0-M-{(R{l-
x79t}kr5CKZAB4(1@<Dgf7I!%zml;5e{$iPKn=b(l#D&rt}609dRK9Q^=HA-1@5fDwbq7Y@#eS^+YS;HryHh5xLQy~Af4^1#s61%Q$jFCm&HS(+!Jc-
21hYEp&(-
=1t%6~=3YKlEi{x|K~F>6<ODz#e(39cB?G8rHx234$$?IHUCttKOHw<D)~xoeN0#BJyWjqcEzYYa%tG62fhk(IFF=BO<9g6fdaK%Pu<#fk5Rq~f(2U47Q4
L5H;MWTbT|BwgErUfqvg$-Aei?-c5G5)DBw&{pvwj-*{K*Rl&wS*($EGu2et-Ayhnm~ORAMP3G8)Jj1ywn0&R3x#gz+S~;Q-
F@DWnG36kbu4QdSI9)ey6i@ZYF$J#=%z?!CzPMru1D1DDql~ltWx8FH$=+!6*4yWuFbQl8>}!|k~N35FbmWsLDc2)(fCzqQobi47cFF0DyBV%K#_E2R4un
GTNg7fI+0(l^mC>ZwVv`8=pUMD`1BaYP&;hAMjoa;O3)s7SW0czNE!R$cTkq)6NjZhldm;)+r`FBq|6X*L9W&t=c<^k-
Y|x}FXQ~m+5f%>^;Dpyg7NQD@xWfc=XNzo!C*9^LU-Dq^JBL*3iL+kR`Wopsfwu}N!Mv}hiR8=3TZS$@>!bn&QVG7={<3~Uh&wbzZ2b2_hMtputC|%4L_U
z8&PhSRu3eUv-
!OSEzlD5Q5i)|wp<iqgsLhvEd?pYLqjpjGEYjHlAec*k`)PdNbWE;f+G^#iYz*HZ=gEOkf}((IvLzKUXf6Gb*~=qS4B9EvlO(2{_|31z_1j%SZhO2tNOvX
ST?3hp=>Z)>(E6S)zV{YzMGVmdiQFzTEC8i)yiulzs2|kPsiTQty3#AD?N9>4_}hZ49X(X{D42WyQ|n9%<D=Pn`D(sUg%Du;P(dyP>c!~-
k4UctbOFJGoh<5-
JVjLcFFASGqS6c`66zHscaDsSWWew>!Q%jw5;*M)t!{px${_m>#i8GF{RcB6*(E=Ae{4Ql%mcp{;uvdM`eeOAPKuwO?)I<t(ReC7bEaP*OhypT&@?Mq0(6
(JCVT&@AkW4qF>|9)>nN5Z&%;e=Qf|yUey-BfeN|dTo_8Yt)}HQv;VejdX1N#wH6~v{ypX|xbLXJ;9u9_B&|?+?H^N*749?{6?jrM`Y-
i=BJ8JYRo*ABqSv+0oj@_(6O@kP6S&@<Z1&tkEGhD^QA)~}dzYk3QX{qS2cpwN6UR)}Ap85!L!Q#S{ShNd>Qd8twANrD{0%6#e7ly8XWWl%-
|#Cj&}j=y6gCcTw{f$lc%#4hvrk%_>U2VgyiwvjzlxrwVSQ_ymE$IhzVHW_F3Wj0tOMDS?g{+K^D`==4#)evxESkc$?kw(k%D*tH%f8G3CX!?yrATHfy#K
xzXDA4g-`hJ{*HRys73FBj*KL)uYIB8r2cF4+xnS55212k0q^1Xe<G*!K8%CJNqF(Ht;I`x_^eV|QpibZ-
0cQ*sD}mW<2}6R5q^X}F7z;QIwwTvgqp8R?kZ$IgzATI%~j~VJgs~s%1c;w1?ue7x#P0*U&QI>u9#DtxDfHxafN|yt~oUx6owog=8=^4luk$B1_M0aWEHR
Cbq(65c<K&r0=`zbcZO$fWZ^Tujpbg3a}h2jekl>81*5cB5?92&;*>=4COhIm%BWdgoHClW(>%>3kG)0$)>}UKy}rZw6nP<UK|xwBN`ytH&1qx91(u@aHn
|mSkDbKJh0o)Y>>q&*q$H7)){2dr_--NG;q17J?<(*-JM%o>#hV&*J<5+By2QD>m`Kd-AwDEtEH;wTg*}jB%eztK5);F3e4~AIQrBrr1#Z$9Ua^F<PZF0V
kMHD9SxXhJWOyG>^5h2Iz`@E1p5X7n>I>i(Qte6^yU1Zad>mf_i@vp}{k;DmALQLnfm5yFr96(O!4C-c@qG{T!w>R<53yx0Z?~KQi-^x-
Q9l8n1^*m;4!qHFKi|*K!|HRwDe!ZU`u_&3PA}Cnsh+%?@Z=Q+zMJY~s+Ur|n5vV%2CHv2^+WKNt$qQ%tbW$i>)_YG-
v+;YiC$^y)ywHeAJC5>^<@u`+ql8?!q>r4Z(nWdiB#Jz@CNwiloNOs&RdXLIswsJw&Av-
RCOCa3qHC;i+kq6ZcG+S=>O&(woG5(r?{v$Qyok7ou-=g`%!sc97Tse3i%~C>B;gxc`!*5
"""
"""The numbers of characters that are neighbours and of one script, then the numbers of the scripts: as varints, packed
by zlib."""


def script_of(characters: NDArray[Any]) -> NDArray[np.int32]:
    """The script of each character, -1 of a number that is no character's."""
    ends, scripts = _runs()
    is_one = (characters >= 0) & (characters < ends[-1])
    places = np.searchsorted(ends, np.where(is_one, characters, 0), side="right")
    found: NDArray[np.int32] = np.where(is_one, scripts[places], -1).astype(np.int32)
    return found


@cache
def script_ranges(name: str) -> tuple[tuple[int, int], ...]:
    """The first and last character of each range of a script. Raises `KeyError` for a name that is none."""
    number = dict(item.split("=") for item in _NAMES.split())[name]
    ends, scripts = _runs()
    return tuple([(int(ends[at - 1]) if at else 0, int(ends[at]) - 1) for at in np.flatnonzero(scripts == int(number))])


@cache
def _runs() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where runs of one script end, and their scripts."""
    numbers, left = [0], 0
    for byte in zlib.decompress(base64.b85decode("".join(_RUNS.split()))):
        numbers[-1] |= (byte & 127) << left
        left += 7
        if byte < 128:
            numbers.append(0)
            left = 0
    half = len(numbers) // 2
    return np.cumsum(numbers[:half]), np.array(numbers[half:-1])
