package draw

import (
	"github.com/braggdev/bragg/internal/textio"
)

// nameRunesMax bounds a name that comes from a scenario or a target.
const nameRunesMax = 200

// Clean makes a text of unknown origin safe to show on one line of a terminal or a page: control characters, escape
// codes and the invisible characters that reorder text become visible, line feeds become spaces.
func Clean(s string) string { return textio.Clip(textio.Line(s), nameRunesMax) }
