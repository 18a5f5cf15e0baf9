package sysbench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load/program"
)

// noRequests is the first version whose summary of fileio has rates only, and no number of requests.
const noRequests = "1.1"

// prepareFiles finds the files of the test fileio.
func (in *instance) prepareFiles() (err error) {
	if in.tool.AtLeast(noRequests) {
		return &diag.Error{Code: "program-unsuitable", Exit: diag.ExitUnavailable,
			Message: fmt.Sprintf("sysbench %s does not say how many requests a test fileio made: only rates, which are rounded", in.tool.Version),
			Hint:    "install sysbench 1.0 from the distribution, or use the generators native or fio"}
	}
	f := &in.config.files
	if in.room, err = program.OpenRoom(&in.workload, program.RoomName{Name: Name, FileSystem: &f.fileSystem, Said: in.said}, f.disk); err != nil || in.workload.Prefill {
		return err
	}
	for i := range f.count {
		info, err := os.Stat(in.file(i))
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() != f.bytes/int64(f.count) {
			return &diag.Error{Code: "no-files", Exit: diag.ExitData,
				Message: fmt.Sprintf("disk %s does not have the %d files of %d bytes of this load", f.disk, f.count, f.bytes/int64(f.count)),
				Hint:    "add workload.PrefillRun for this workload, or for one with the same disk, data and files, before the load"}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// folder is where the files are.
func (in *instance) folder() string { return in.room.Path(program.DiskFolder(in.config.files.disk)) }

// file is one of them, by sysbench's names.
func (in *instance) file(i int) string {
	return filepath.Join(in.folder(), fmt.Sprintf("test_file.%d", i))
}

func (in *instance) fillFiles(ctx context.Context) error {
	if err := in.room.Clear(program.DiskFolder(in.config.files.disk)); err != nil {
		return err
	}
	return in.keep(ctx, in.command("prepare"))
}
