package agent

import (
	"errors"
	"fmt"
	"os"

	"github.com/braggdev/bragg/internal/diag"
)

// makeFiles makes the files that stand in for disks, of their whole size: a file system that is too small is found now rather than
// in the middle of a load. Existing ones keep their content.
func makeFiles(files []File) error {
	for _, f := range files {
		if err := makeFile(f); err != nil {
			return &diag.Error{
				Code: "agent-file", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("make the disk %q of %d bytes", f.Path, f.SizeBytes), Err: err,
			}
		}
	}
	return nil
}

func makeFile(f File) (err error) {
	file, err := os.OpenFile(f.Path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	if info.Size() >= f.SizeBytes {
		return nil
	}
	if err := file.Truncate(f.SizeBytes); err != nil {
		return err
	}
	return reserve(file, f.SizeBytes)
}
