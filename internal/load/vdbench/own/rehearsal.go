package own

import (
	"fmt"
	"math"
	"time"

	"github.com/braggdev/bragg/internal/load/vdbench/parmfile"
)

// timesOfRuns are the parameters that a rehearsal shortens.
var timesOfRuns = []string{"elapsed", "warmup", "pause"}

// elapsedDefault is that of vdbench, elapsedMin that of a rehearsal, if it is not less in the file.
const (
	elapsedDefault = 30 * time.Second
	elapsedMin     = 3 * time.Second
)

// lasts is a time of a run, in a rehearsal shortened to whole seconds: vdbench wants multiples of the interval.
func (o *File) lasts(rd *parmfile.Definition, key string) time.Duration {
	fallback, least := time.Duration(0), time.Duration(0)
	if key == "elapsed" {
		fallback, least = elapsedDefault, elapsedMin
	}
	t := rd.Seconds(key, fallback)
	if o.times >= 1 {
		return t
	}
	return max(min(t, least), time.Duration(math.Ceil(t.Seconds()*o.times))*time.Second)
}

// rehearsed are the times of a run in a rehearsal.
func (o *File) rehearsed(rd *parmfile.Definition) (text string) {
	if o.times >= 1 {
		return ""
	}
	for _, key := range timesOfRuns {
		if t := o.lasts(rd, key); t > 0 {
			text += fmt.Sprintf(",%s=%g", key, t.Seconds())
		}
	}
	return text
}
