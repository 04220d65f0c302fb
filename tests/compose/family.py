"""A family of directives: a row of the tables in families/."""
import dataclasses

import grammar


@dataclasses.dataclass(frozen=True)
class Family:
    """What a group of directives may write, and the requests that meet it.

    `rows` is a sheet whose lines are all drawn by their shares; of `menu`, `most` lines are drawn at most, and at least one. `at` names the blocks:
    http, server, location, if. `asks` has a line for a change of a request: `Name: value`, `?argument`, `METHOD`, `/path`, each with its share.
    """
    name: str
    weight: int
    at: str
    rows: str = ""
    menu: str = ""
    most: int = 1
    asks: str = ""

    def statements(self, dice, prefix):
        drawn = dice.statements(grammar.sheet(self.rows), prefix)
        menu = grammar.sheet(self.menu)
        for line in dice.random.sample(menu, min(len(menu), dice.random.randint(1, self.most))) if menu else ():
            drawn += dice.statements([line], prefix)
        return drawn
