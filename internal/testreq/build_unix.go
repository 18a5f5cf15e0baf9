//go:build unix

package testreq

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/durable"
)

// Build builds programs as users get them, by the import paths of their packages, and puts them into dir. All packages of a checkout share
// what is built: the go command links again only what has changed. dir has programs of its own, which a later build does not change.
func Build(dir string, packages ...string) error {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		return errors.New("find the source of package testreq")
	}
	shared := filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(file))), "build", "test-programs")
	if err := os.MkdirAll(shared, 0o755); err != nil {
		return err
	}
	release, err := durable.LockDir(shared, unix.LOCK_EX)
	if err != nil {
		return fmt.Errorf("lock %q: %w", shared, err)
	}
	defer release()
	for _, one := range packages {
		built := filepath.Join(shared, path.Base(one))
		command := exec.Command("go", "build", "-o", built, "-trimpath", "-ldflags", "-s -w", one)
		command.Dir, command.Env = shared, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w: %s", one, err, out)
		}
		// Not in this process: a program cannot start while a process that forks at this moment has it open for writing.
		if out, err := exec.Command("cp", built, dir).CombinedOutput(); err != nil {
			return fmt.Errorf("copy %q: %w: %s", built, err, out)
		}
	}
	return nil
}
