"""A row of the ledger: one vulnerability, the configuration with which it can be attacked, and the attack."""
import dataclasses
import typing


@dataclasses.dataclass
class Row:
    """`cve` and `title` name the vulnerability, `holes` the versions of nginx that have it, `weir` the reason why weir has not.

    `http` is the configuration inside `http { }`, `main` outside of it; both may have `<port>`, `<origin>`, `<dns>`, `<dir>` and `<alive>`.
    `attack(target)` raises `Hole` if it sees the wrong behaviour; crashes are seen afterwards. `release` is the nginx that the program
    builds to show the hole; `unbuilt` says why there is none. `absent` says why nothing is attacked; weir must then refuse
    `refused`, if the row has it.
    `near` means that the attack is not public and that the row runs something near it.
    `sanitizer` adds options of AddressSanitizer: a stale number is not seen if fresh memory is filled with one value.
    `alerts` is a pattern of alerts that weir may log because of the configuration.
    """

    cve: str
    title: str
    holes: str
    weir: str
    attack: typing.Callable | None = None
    http: str = ""
    main: str = ""
    release: str = ""
    unbuilt: str = ""
    absent: str = ""
    refused: str = ""
    near: bool = False
    alerts: str = "no alert"
    origin: typing.Callable | None = None
    dns: typing.Callable | None = None
    prepare: typing.Callable | None = None
    asan: bool = True
    sanitizer: str = ""
    ssl: bool = False
    serves: bool = True
    alive2: bool = False
    connections: int = 512
