package iojob

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/load/ioengine"
)

// PlanOperationsDefault is the default limit of operations per clone in a plan.
const PlanOperationsDefault = 100_000

// WritePlan writes the operations that jobs would do as lines of JSON, clone after clone, each in the order of issue. It
// does no I/O and makes no file. A clone's plan is cut after most operations (0: PlanOperationsDefault), because a job may
// have no end; every clone's last line reports whether it was cut. docs/formats/plan.md describes the lines.
func WritePlan(w io.Writer, jobs []fiojob.Job, o Options, most int64) error {
	if most <= 0 {
		most = PlanOperationsDefault
	}
	iologs := &ioLogs{}
	defer iologs.close()
	clones, err := expand(jobs, &o, iologs)
	if err != nil {
		return err
	}
	r := &runner{options: o, clones: clones}
	if err := r.check(); err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 1<<16)
	for _, c := range clones {
		if err := r.planClone(out, c, most); err != nil {
			return err
		}
	}
	return out.Flush()
}

func (r *runner) planClone(out *bufio.Writer, c *clone, most int64) error {
	if c.later {
		return fmt.Errorf("plan job %q: a job above writes the log that it replays: run it, and plan the replay alone", c.job.Name)
	}
	var line []byte
	var writeErr error
	var n, bytes int64
	cut := false
	head, err := planHead(c)
	if err != nil {
		return err
	}
	err = ioengine.Generator{Replay: c.log}.OperationsOfJobs(r.workload(c, 0), []fiojob.Job{c.job}, func(o ioengine.Operation) bool {
		if n == most {
			cut = true
			return false
		}
		n++
		if o.Sync == "" {
			bytes += o.Size
		}
		line = append(line[:0], head...)
		line = appendPlanned(line, &o, c.paced(o))
		_, writeErr = out.Write(line)
		return writeErr == nil
	})
	if err != nil || writeErr != nil {
		return errors.Join(err, writeErr)
	}
	if cut {
		r.options.say("plan of job %q, clone %d: cut after %d operations", c.job.Name, c.index, n)
	}
	_, err = fmt.Fprintf(out, "%s,\"end\":{\"phase\":%d,\"operations\":%d,\"bytes\":%d,\"cut\":%t}}\n", head, c.phase, n, bytes, cut)
	return err
}

// paced reports whether an operation has a due time.
func (c *clone) paced(o ioengine.Operation) bool {
	if c.log != nil {
		return o.Sync == "" && !c.job.Replay.NoStall
	}
	return o.Sync == "" && (c.job.Rate[o.Direction] > 0 || c.job.RateIOPS[o.Direction] > 0)
}

// planHead is the common beginning of all lines of a clone.
func planHead(c *clone) ([]byte, error) {
	name, err := json.Marshal(c.job.Name)
	if err != nil {
		return nil, err
	}
	head := append([]byte(`{"job":`), name...)
	return strconv.AppendInt(append(head, `,"clone":`...), int64(c.index), 10), nil
}

func appendPlanned(line []byte, o *ioengine.Operation, paced bool) []byte {
	file, _ := json.Marshal(o.Device) // strings always marshal
	line = append(append(line, `,"file":`...), file...)
	if o.Sync != "" {
		line = append(append(line, `,"op":"`...), o.Sync...)
		if o.Size == 0 {
			return append(line, "\"}\n"...)
		}
	} else {
		line = append(append(line, `,"op":"`...), o.Direction.String()...)
	}
	line = strconv.AppendInt(append(line, `","offset":`...), o.Offset, 10)
	line = strconv.AppendInt(append(line, `,"length":`...), o.Size, 10)
	if paced {
		line = strconv.AppendFloat(append(line, `,"time_us":`...), float64(o.DueNanos)/1e3, 'f', 3, 64)
	}
	return append(line, "}\n"...)
}
