package console

import "strconv"

// widthDefault is used if the output width is unknown.
const widthDefault = 100

// Live reports whether a view may be redrawn in place: not with TERM=dumb, a terminal that cannot move its cursor.
func (p *Process) Live() bool { return p.Terminal && p.Getenv("TERM") != "dumb" }

// Color reports whether output may have colours: on a terminal that is not dumb, unless NO_COLOR (no-color.org) is set to
// anything.
func (p *Process) Color() bool { return p.Live() && p.Getenv("NO_COLOR") == "" }

// TerminalSize returns the columns and rows of the terminal, zeros if unknown. COLUMNS overrides the width, as in other programs:
// shells do not export the variable by default, so it was set on purpose.
func (p *Process) TerminalSize() (columns, rows int) {
	if p.Size != nil {
		columns, rows = p.Size()
	}
	if n, err := strconv.Atoi(p.Getenv("COLUMNS")); err == nil && n > 0 {
		columns = n
	}
	return columns, rows
}

// Width returns how many columns text may take.
func (p *Process) Width() int {
	if columns, _ := p.TerminalSize(); columns > 0 {
		return columns
	}
	return widthDefault
}

// Columns returns the width of the terminal, 0 if unknown: programs that read the output need whole lines.
func (p *Process) Columns() int {
	columns, _ := p.TerminalSize()
	return columns
}

// TextWidth returns the width of running text: lines longer than TextWidthMax are hard to read.
func (p *Process) TextWidth() int { return min(p.Width(), TextWidthMax) }

// LiveSize returns the size function of a view that is redrawn in place, nil for an unknown terminal. COLUMNS can only make it
// narrower: a line that the terminal wraps could not be drawn over.
func (p *Process) LiveSize() func() (columns, rows int) {
	if p.Size == nil {
		return nil
	}
	return func() (int, int) {
		real, rows := p.Size()
		columns, _ := p.TerminalSize()
		if real > 0 {
			columns = min(columns, real)
		}
		return columns, rows
	}
}
