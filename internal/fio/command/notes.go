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

// notes are the messages of io beside its numbers: warnings about the job file, files that are laid out, doubtful results.
// A successful run writes nothing to standard error, because programs that run fio interpret text there as a failure: notes
// are in the text report as they are made, and in the JSON report under "bragg". A failed run prints them before its error.
type notes struct {
	mu    sync.Mutex
	list  []string
	text  *bufio.Writer // the report, if it is text
	shown bool          // the report goes to standard output
}

// notesMax bounds the number of notes.
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
		_ = n.text.Flush() // the following report has the writer's error
	}
}

// showIn shows notes in a text report, beginning with the existing ones.
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

// addAll adds warnings about job files.
func (n *notes) addAll(list diag.List) {
	for _, d := range list {
		text := fmt.Sprintf("%s: %s: %s", d.Pos, d.Severity, d.Message)
		if d.Hint != "" {
			text += "; " + d.Hint
		}
		n.add(text)
	}
}

// failed writes notes that the user has not seen to standard error.
func (n *notes) failed(w io.Writer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.list) > 0 && !n.shown {
		fmt.Fprintln(w, strings.Join(n.list, "\n"))
	}
}

// all returns all notes so far.
func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.list)
}
