package playbook

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/braggdev/bragg/internal/durable"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/verb"
)

// Bounds on what is kept of ansible's output. A loop under -vvv, or a task that returns a file, writes gigabytes.
const (
	lineBytesMax     = 1 << 20  // at which a line is written in parts
	secretBytesMax   = 4 << 10  // of a secret in such a line
	keptHeadBytesMax = 64 << 20 // of the file
	keptTailBytesMax = 1 << 20
)

// output is the file with what ansible prints, in the folder that stays with the run: the beginning and the end of it.
type output struct {
	mask    func(string) string
	file    *os.File // nil: there is no folder
	partial []byte   // a line that has not ended

	written int64 // bytes of the beginning
	beyond  int64 // bytes after it, the last of which are in tail
	tail    textio.Tail
}

func (p *Playbook) output(env *verb.Env, m machines) (*output, error) {
	secrets := m.passwords()
	o := &output{tail: textio.Tail{MaxBytes: keptTailBytesMax}, mask: func(text string) string {
		for _, s := range secrets {
			text = strings.ReplaceAll(text, s, "***")
		}
		if env.Mask != nil {
			text = env.Mask(text)
		}
		return text
	}}
	if env.Dir == "" {
		return o, nil
	}
	var err error
	name := fmt.Sprintf("playbook-%d-%s.log", env.Step.ID, strings.TrimSuffix(filepath.Base(p.Filename), filepath.Ext(p.Filename)))
	o.file, err = durable.OpenFile(filepath.Join(env.Dir, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	return o, err
}

// Write masks and writes whole lines.
func (o *output) Write(text []byte) (int, error) {
	end := 0
	if at := bytes.LastIndexByte(text, '\n'); at >= 0 {
		end = len(o.partial) + at + 1
	}
	o.partial = append(o.partial, text...)
	if end == 0 && len(o.partial) <= lineBytesMax {
		return len(text), nil
	}
	if end == 0 {
		// A secret may lie across any cut. One that ends before the end of the line so far is masked before the cut, any other is whole
		// in what stays.
		o.partial = []byte(o.mask(string(o.partial)))
		end = max(len(o.partial)-secretBytesMax, 0)
	}
	lines := o.partial[:end]
	o.partial = bytes.Clone(o.partial[end:])
	return len(text), o.put(lines)
}

func (o *output) put(text []byte) error {
	if o.file == nil || len(text) == 0 {
		return nil
	}
	masked := []byte(o.mask(string(text)))
	head := masked[:min(int64(len(masked)), keptHeadBytesMax-o.written)]
	o.written += int64(len(head))
	o.beyond += int64(len(masked) - len(head))
	_, _ = o.tail.Write(masked[len(head):])
	if len(head) == 0 {
		return nil
	}
	_, err := o.file.Write(head)
	return err
}

func (o *output) Close() error {
	if o.file == nil {
		return nil
	}
	err := o.put(o.partial)
	if left := o.beyond - keptTailBytesMax; left > 0 {
		_, e := fmt.Fprintf(o.file, "\n… %d bytes of output left out …\n", left)
		err = errors.Join(err, e)
	}
	_, e := o.file.WriteString(o.tail.String())
	return errors.Join(err, e, o.file.Close())
}
