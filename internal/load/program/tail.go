package program

import (
	"slices"
	"strings"
	"sync"

	"github.com/braggdev/bragg/internal/load"
)

// Tail keeps the first and the last lines of a program's messages: the first line usually has the cause, and a failing device can
// produce millions of lines.
type Tail struct {
	mutex sync.Mutex
	first []string
	last  []string
	part  []byte
	names *strings.Replacer // of the machine's paths by the VM's device names
}

// NewTail replaces device paths in the messages by the names that the configuration has for them.
func NewTail(devices []load.Device) *Tail {
	// One path may be a prefix of another: the longest goes first.
	devices = slices.SortedFunc(slices.Values(devices), func(a, b load.Device) int { return len(b.Path) - len(a.Path) })
	var pairs []string
	for _, d := range devices {
		if d.Path != "" {
			pairs = append(pairs, d.Path, d.Name)
		}
	}
	return &Tail{names: strings.NewReplacer(pairs...)}
}

const (
	tailLines     = 4 // of each end
	tailLineBytes = 400
)

// Write receives standard error.
func (t *Tail) Write(p []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for _, b := range p {
		switch {
		case b == '\n':
			t.add(string(t.part))
			t.part = t.part[:0]
		case len(t.part) < tailLineBytes:
			t.part = append(t.part, b)
		}
	}
	return len(p), nil
}

// Line receives one line of standard output.
func (t *Tail) Line(text string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.add(text)
}

func (t *Tail) add(text string) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return
	case len(text) > tailLineBytes:
		text = text[:tailLineBytes]
	}
	if len(t.first) < tailLines {
		t.first = append(t.first, text)
		return
	}
	if len(t.last) == tailLines {
		t.last = append(t.last[:0], t.last[1:]...)
	}
	t.last = append(t.last, text)
}

// Quoted returns the kept output, for the end of an error message.
func (t *Tail) Quoted() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	all := append(append([]string(nil), t.first...), t.last...)
	if len(t.part) > 0 {
		all = append(all, string(t.part))
	}
	if len(all) == 0 {
		return ""
	}
	return ": " + t.names.Replace(strings.Join(all, "; "))
}
