package fiojob

import (
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

// CommandPriority gives a share of the operations another priority, separately for reads and writes. The zero value gives
// none.
type CommandPriority struct {
	Percent [2]int                    // of operations
	Class   [2]int                    // of the kernel: 1 realtime (also 0), 2 best effort, 3 idle
	Level   [2]int                    // 0, the highest, to 7
	Split   [2][]syntax.PrioritySplit // by block size, replaces Percent
}

// Active reports whether any operation has another priority.
func (c *CommandPriority) Active() bool {
	return c.Percent != [2]int{} || len(c.Split[Read])+len(c.Split[Write]) > 0
}

var commandPriority = []spec{
	{name: "cmdprio_percentage", does: "share of operations with a separate priority, for reads and writes",
		apply: pairOf(func(j *Job) *[2]int { return &j.CommandPriority.Percent }, 0, 100)},
	{name: "cmdprio_class", does: "class of the separate priority: 1 realtime (default), 2 best effort, 3 idle",
		apply: pairOf(func(j *Job) *[2]int { return &j.CommandPriority.Class }, 1, 3)},
	{name: "cmdprio", does: "level of the separate priority within its class; 0 is the highest",
		apply: pairOf(func(j *Job) *[2]int { return &j.CommandPriority.Level }, 0, 7)},
	{name: "cmdprio_bssplit", does: "share of operations with a separate priority by block size: size/percent or size/percent/class/priority, separated by :",
		apply: setPrioritySplit},
}

// pairOf reads "read[,write]"; a single value sets both.
func pairOf(field func(*Job) *[2]int, low, high int64) apply {
	return func(j *Job, a *arg) {
		if strings.Count(a.Seen, ",") > 1 {
			a.Bad("want at most two values, for read and write")
			return
		}
		a.Triple(func(d int, text string) (string, bool) {
			if Direction(d) == Trim {
				return "", true
			}
			v, ok := a.Number(text, low, high)
			if ok {
				field(j)[d] = int(v)
			}
			return strconv.FormatInt(v, 10), ok
		})
	}
}

// setPrioritySplit reads "64k/40/1/0:4k/20,1024k/60": each entry has two or four numbers.
func setPrioritySplit(j *Job, a *arg) {
	if strings.Count(a.Seen, ",") > 1 {
		a.Bad("want at most two lists, for read and write")
		return
	}
	a.Triple(func(d int, text string) (string, bool) {
		if Direction(d) == Trim {
			return "", true
		}
		list, exact, ok := syntax.PrioritySplits(a.Value, strings.TrimSpace(text))
		if ok {
			j.CommandPriority.Split[d] = list
		}
		return exact, ok
	})
}

// checkPriorities finds problems that only several options of CommandPriority show together.
func checkPriorities(j *Job, at func(string) (syntax.Option, bool), blame func(diag.Severity, syntax.Option, string, string, string)) {
	c := &j.CommandPriority
	if c.Percent != [2]int{} && len(c.Split[Read])+len(c.Split[Write]) > 0 {
		o, _ := at("cmdprio_bssplit")
		blame(diag.SeverityError, o, "two-priorities", "cmdprio_bssplit and cmdprio_percentage say the same thing twice",
			"take one of them; fio refuses both together too")
		return
	}
	for _, key := range []string{"cmdprio_class", "cmdprio"} {
		if o, found := at(key); found && !c.Active() {
			blame(diag.SeverityWarning, o, "priority-without-share", key+" has no effect without cmdprio_percentage or cmdprio_bssplit",
				"write the share of operations beside it, such as cmdprio_percentage=10")
			return
		}
	}
}
