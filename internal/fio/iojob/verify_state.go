package iojob

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/durable"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/verify"
	"github.com/braggdev/bragg/internal/load/ioengine"
)

// Files that record how far the writes of a job came, as in fio: local-NAME-NUMBER-verify.state in the current folder. A
// job that verifies writes one when it is stopped, or at its end with verify_state_save=1; verify_only with
// verify_state_load=1 reads back the writes it records.

func (c *clone) statePath(o *Options) string {
	name := strings.ReplaceAll(verify.StateName(c.job.Name, c.number), "/", "_")
	return filepath.Join(cmp.Or(o.StateFolder, o.Folder), name)
}

// loadState loads the state that an earlier run saved.
func (c *clone) loadState(o *Options) error {
	j := &c.job
	if !j.Verify.StateLoad || j.Verify.Method == "" {
		return nil
	}
	path := c.statePath(o)
	wrong := func(err error, hint string) error {
		return &diag.Error{
			Code: "verify-state", Exit: diag.ExitData, Err: err, Hint: hint,
			Message: fmt.Sprintf("job %q: load verification state %q", j.Name, path),
		}
	}
	if !j.Verify.Only && j.Writes() {
		return wrong(errors.New("the job does not only verify"), "verify_state_load=1 goes with verify_only=1 or rw=read")
	}
	data, err := readBounded(path, verify.StateBytesMax)
	if err != nil {
		return wrong(err, "a run with verify_state_save=1, or one that is stopped, leaves it in its folder")
	}
	s, err := verify.ReadState(data)
	switch {
	case err != nil:
		return wrong(err, "not a state file of fio or bragg, or truncated")
	case s.Writes == 0:
		return wrong(errors.New("according to it nothing was written"), "")
	}
	limit := &fiojob.VerifyLimit{Writes: s.Writes, Depth: uint64(s.Depth)}
	for _, at := range s.Completed {
		limit.Completed = append(limit.Completed, fiojob.VerifyPlace{File: int64(at.File), Offset: int64(at.Offset)})
	}
	j.Verify.Limit = limit
	return nil
}

// readBounded reads a regular file of at most this many bytes.
func readBounded(path string, most int64) ([]byte, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("not a regular file but %v", info.Mode().Type())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err = errors.Join(err, f.Close()); err == nil && int64(len(data)) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	return data, err
}

// saveState records how far a clone came. stopped reports that its load was ended from outside.
func (c *clone) saveState(o *Options, run ioengine.Run, stopped bool) error {
	v := &c.job.Verify
	if v.StateNever || !v.StateSave && !stopped {
		return nil
	}
	limit, order, ok := run.Written()
	if !ok {
		if v.StateSave && !v.Only && c.job.Writes() {
			o.say("job %q leaves no verification state: it does not only write, or a write failed", c.job.Name)
		}
		return nil
	}
	s := verify.State{Depth: uint32(limit.Depth), Files: uint32(order.Files), Writes: limit.Writes, Name: c.job.Name}
	if order.OfSeed {
		s.MarkOurs()
	}
	for _, at := range limit.Completed {
		s.Completed = append(s.Completed, verify.FilePlace{File: uint64(at.File), Offset: uint64(at.Offset)})
	}
	path := c.statePath(o)
	if err := durable.WriteFile(path, s.Bytes(), 0o644); err != nil {
		return stateUnsaved(path, err)
	}
	o.say("how far job %q came is in %s; verify_only=1 with verify_state_load=1 reads that back", c.job.Name, path)
	return nil
}

func stateUnsaved(path string, err error) error {
	return &diag.Error{
		Code: "verify-state", Exit: diag.ExitUndecided, Err: err, Message: fmt.Sprintf("save verification state %q", path),
	}
}
