package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/braggdev/bragg/internal/iojob"
)

// ioStreams are outputs of io beside the report.
type ioStreams struct {
	plan           string // a file, or "-"
	planOperations int64
}

// option takes an option of the command line and tells whether it is one of these.
func (s *ioStreams) option(key, value string) (known bool, err error) {
	switch key {
	case "plan":
		if value == "" {
			return true, usage("--plan needs a file, or - for standard output")
		}
		s.plan = value
	case "plan-operations":
		if s.planOperations, err = strconv.ParseInt(value, 10, 64); err != nil || s.planOperations < 1 {
			return true, usage("--plan-operations=%s: want how many operations of each clone the plan has at most", value)
		}
	default:
		return false, nil
	}
	return true, nil
}

// planIO writes what jobs would do and does nothing else.
func (p *Process) planIO(o *ioOrder) error {
	out, closeOutput, err := p.ioOutput(o.streams.plan)
	if err != nil {
		return err
	}
	err = iojob.WritePlan(out, o.jobs, iojob.Options{
		Folder: p.Directory, Backend: o.backend, Say: func(text string) { fmt.Fprintln(p.Stderr, clean(text)) },
	}, o.streams.planOperations)
	return errors.Join(err, closeOutput())
}
