package result

import (
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/braggdev/bragg/internal/durable"
	"github.com/braggdev/bragg/internal/result/frame"
)

// appender is one framed file and the text that waits for its next frame.
type appender struct {
	file    *os.File
	encoder *zstd.Encoder
	text    []byte
	frame   []byte
}

func newAppender(folder *durable.Folder, name string, flag int) (*appender, error) {
	encoder, err := frame.NewEncoder()
	if err != nil {
		return nil, err
	}
	f, err := folder.Open(name, flag, fileMode)
	if err != nil {
		return nil, err
	}
	return &appender{file: f, encoder: encoder}, nil
}

func (a *appender) flush() error {
	a.frame = a.encoder.EncodeAll(a.text, a.frame[:0])
	if err := appendAll(a.file, a.frame); err != nil {
		return err // keep the text, for another try by Seal
	}
	a.text = a.text[:0]
	return nil
}

func (a *appender) close() {
	if a != nil {
		_ = a.file.Close()
		_ = a.encoder.Close()
	}
}

// appendAll appends p or, after a partial write, truncates the file, so that it never ends in the middle of a frame or line while
// its writer lives.
func appendAll(f *os.File, p []byte) error {
	n, err := f.Write(p)
	if err != nil && n > 0 {
		if info, statErr := f.Stat(); statErr == nil {
			_ = f.Truncate(info.Size() - int64(n))
		}
	}
	return err
}
