package fiojob

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

// Replay makes a job repeat the operations of a log instead of its own pattern.
type Replay struct {
	Logs     []string // clones take them in turn; none: no replay
	NoStall  bool     // as fast as possible, in the log's order
	Redirect string   // replaces every file of the log
	// SpeedPercent is the speed of the log's time; 0 is 100.
	SpeedPercent int
	Scale, Align int64    // offsets are divided by Scale, then rounded down to a multiple of Align; 0: unchanged
	Skip         []string // "read", "write", "trim", "sync"
}

// Log returns the log of one clone, "" if the job replays none.
func (r *Replay) Log(clone int) string {
	if len(r.Logs) == 0 {
		return ""
	}
	return r.Logs[clone%len(r.Logs)]
}

// setReplayLogs reads a list with colons between names.
func setReplayLogs(j *Job, a *arg) {
	a.Blank()
	names := syntax.SplitNames(a.Text, true)
	switch {
	case len(names) == 0:
		a.Bad("want the name of a log")
		return
	case len(names) > filesMax:
		a.Bad(fmt.Sprintf("%d logs, at most %d are possible", len(names), filesMax))
		return
	case slices.Contains(names, "-"):
		a.Problem("bad-value", "a log is looked through before it is replayed, and standard input can be read only once",
			"save it in a file")
		return
	}
	j.Replay.Logs = names
	a.Option.Exact = syntax.JoinFilenames(names, nil)
}

var replaySkips = []string{"read", "write", "trim", "sync"}

// setReplaySkip reads a list with commas between its words.
func setReplaySkip(j *Job, a *arg) {
	var skip []string
	for word := range strings.SplitSeq(a.Text, ",") {
		word = strings.TrimSpace(word)
		if !slices.Contains(replaySkips, word) {
			hint := "some of " + strings.Join(replaySkips, ",")
			if near := diag.Nearest(word, replaySkips); near != "" {
				hint = fmt.Sprintf("did you mean %s?", near)
			}
			a.Problem("bad-value", fmt.Sprintf("replay_skip has no value %q", word), hint)
			return
		}
		skip = append(skip, word)
	}
	j.Replay.Skip = skip
	a.Option.Exact = strings.Join(skip, ",")
	if a.Raw.BlankBefore {
		a.RefusedByFio(a.Option.Exact)
	}
}

func setReplayAlign(j *Job, a *arg) {
	n, ok := a.Number(a.Seen, 1, syntax.BlockBytesMax)
	if !ok {
		return
	}
	if bits.OnesCount64(uint64(n)) != 1 {
		a.Bad("want a power of two")
		return
	}
	j.Replay.Align = n
	a.Option.Exact = syntax.FormatBytes(n)
}
