package thread

import "github.com/braggdev/bragg/internal/fio/fiojob"

// Priority is what the kernel calls ioprio: the class above 13 bits, the level in the lowest three.
type Priority uint16

// NewPriority joins a class (0 none, 1 realtime, 2 best effort, 3 idle) and a level (0, the highest, to 7).
func NewPriority(class, level int) Priority { return Priority(class<<prioClassShift | level) }

// Classes, and where they stand in a Priority.
const (
	prioClassShift = 13
	prioLevelMask  = 7

	Realtime   = 1
	BestEffort = 2
)

// Class is 0 where none is set, 1 realtime, 2 best effort, 3 idle.
func (p Priority) Class() int { return int(p >> prioClassShift) }

// Level is 0 to 7, 0 is the highest.
func (p Priority) Level() int { return int(p & prioLevelMask) }

// PriorityOf is that of a job's threads.
func PriorityOf(j *fiojob.Job) Priority {
	class, level := j.Control.PrioClass, j.Control.Prio
	if class == 0 && level > 0 {
		class = BestEffort
	}
	return NewPriority(class, level)
}
