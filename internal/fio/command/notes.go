package command

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/textio"
)

// notes are what io has to say beside its numbers: warnings about the job file, files that are laid out, doubts. A run that
// succeeds writes nothing to standard error, because programs that run fio take text there for a failure: notes are in the
// text report as they are made, and in the JSON report under "bragg". A run that fails puts them in front of its error.
type notes struct {
	mu    sync.Mutex
	list  []string
	text  *bufio.Writer // the report, where it is text
	shown bool          // the report goes to standard output
}

// notesMax bounds what is kept.
const notesMax = 1000

func (n *notes) add(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.list) == notesMax {
		return
	}
	n.list = append(n.list, textio.Lines(text))
	if n.text != nil {
		fmt.Fprintln(n.text, textio.Lines(text))
		_ = n.text.Flush() // the report that follows says what is wrong with the writer
	}
}

// showIn lets notes appear in a text report; those that there are go there at once.
func (n *notes) showIn(w io.Writer, o *invocation) {
	n.mu.Lock()
	defer n.mu.Unlock()
	text, ok := w.(*bufio.Writer)
	if !ok || !slices.Contains(o.formats, "normal") {
		return
	}
	n.text, n.shown = text, o.output == "" || o.output == "-"
	for _, line := range n.list {
		fmt.Fprintln(text, line)
	}
}

// addAll notes warnings about job files.
func (n *notes) addAll(list diag.List) {
	for _, d := range list {
		text := fmt.Sprintf("%s: %s: %s", d.Pos, d.Severity, d.Message)
		if d.Hint != "" {
			text += "; " + d.Hint
		}
		n.add(text)
	}
}

// failed writes notes to standard error that the user has not seen.
func (n *notes) failed(w io.Writer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.list) > 0 && !n.shown {
		fmt.Fprintln(w, strings.Join(n.list, "\n"))
	}
}

// all returns what was noted so far.
func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.list)
}
