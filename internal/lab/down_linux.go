package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/wait"
)

// Down removes the named labs, or all labs without names, and leftovers of dead ones in any case. It returns the names
// of the removed labs. A missing lab is not an error. When ctx ends, the lab that is being removed is the last one.
func Down(ctx context.Context, labs string, names []string, all bool) (removed []string, err error) {
	for _, name := range names {
		if err := checkName(name); err != nil {
			return nil, err
		}
	}
	if _, err := os.Lstat(labs); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	unlock, err := lockLabs(ctx, labs)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	named := map[string]bool{}
	for _, name := range names {
		named[name] = true
		if _, err := load(labs, name); err != nil && !errors.Is(err, errNoLab) {
			return nil, err
		}
	}
	known, err := Labs(labs)
	if err != nil {
		return nil, err
	}
	var faults []error
	for _, l := range known {
		dead, err := l.dead()
		if !dead && !all && !named[l.Name] {
			continue
		}
		if ctx.Err() != nil {
			faults = append(faults, context.Cause(ctx))
			break
		}
		if err == nil && l.starting() {
			err = &diag.Error{
				Code: "lab-unborn", Exit: diag.ExitLocked, Message: fmt.Sprintf("remove lab %q: it is being made", l.Name),
				Hint: fmt.Sprintf("process %d makes it; try again", l.Maker.ID),
			}
		}
		if err == nil {
			err = l.remove()
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		removed = append(removed, l.Name)
	}
	return removed, errors.Join(faults...)
}

// dead reports whether a lab's keeper has exited for good or was never started. If that cannot be determined, it is an
// error.
func (l *Lab) dead() (bool, error) {
	here, err := thisMachine()
	if err != nil {
		return false, err
	}
	if here.Boot == l.Machine.Boot && here.Processes != l.Machine.Processes {
		return false, foreign(l.Dir, fmt.Sprintf("lab %q was made in another PID namespace (a container?)", l.Name))
	}
	return !l.Alive() && !l.starting(), nil
}

// starting reports whether a process is creating the lab and has not started the keeper yet.
func (l *Lab) starting() bool {
	here, err := thisMachine()
	return err == nil && here == l.Machine && l.Keeper.ID == 0 && l.Maker.runs()
}

// linkTimeLimit is how long the kernel may take to remove an interface whose other end is gone.
const linkTimeLimit = time.Minute

// remove ends a lab's keeper, with which everything else of it ends, waits for that, and removes the folder.
func (l *Lab) remove() error {
	if dead, err := l.dead(); err != nil {
		return err
	} else if !dead {
		if err := kill(l.Keeper); err != nil {
			return fmt.Errorf("remove lab %q: %w", l.Name, err)
		}
	}
	for until := time.Now().Add(linkTimeLimit); ; time.Sleep(5 * time.Millisecond) {
		there, err := interfaceExists(l.Interface)
		if err != nil {
			return fmt.Errorf("remove lab %q: %w", l.Name, err)
		}
		if !there {
			break
		}
		if time.Now().After(until) {
			return fmt.Errorf("remove lab %q: its interface %s is still there", l.Name, l.Interface)
		}
	}
	if err := removeFolder(l); err != nil {
		return fmt.Errorf("remove lab %q: %w", l.Name, err)
	}
	return nil
}

// removeFolder removes a lab's folder, its description last: while that is there, the rest will be found. It refuses where
// something is mounted below, which is not the lab's doing.
func removeFolder(l *Lab) error {
	mounts, err := mountsBelow(l.Dir)
	if err != nil {
		return err
	}
	if len(mounts) > 0 {
		return &diag.Error{
			Code: "lab-mounted", Exit: diag.ExitRefused, Message: "something is mounted in its folder: " + strings.Join(mounts, ", "),
			Hint: "unmount it, then try again",
		}
	}
	entries, err := os.ReadDir(l.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != stateFile {
			if err := os.RemoveAll(filepath.Join(l.Dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return os.RemoveAll(l.Dir)
}

// mountsBelow lists the mount points in a folder, proc_pid_mountinfo(5).
func mountsBelow(dir string) ([]string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var below []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		const pointField = 4
		fields := strings.Fields(lines.Text())
		// Blanks are escaped in there, and a lab's path has none.
		if len(fields) > pointField && strings.HasPrefix(fields[pointField], dir+"/") {
			below = append(below, fields[pointField])
		}
	}
	return below, lines.Err()
}

// lockLabs locks a folder of labs, which is made where it is missing, against other programs that make or remove labs.
func lockLabs(ctx context.Context, labs string) (unlock func() error, err error) {
	if err := os.MkdirAll(labs, 0o700); err != nil {
		return nil, fmt.Errorf("open the folder of labs: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(labs, &st); err != nil {
		return nil, fmt.Errorf("open the folder of labs: %w", err)
	}
	if st.Uid != uint32(os.Geteuid()) || st.Mode&0o022 != 0 {
		return nil, &diag.Error{
			Code: "lab-folder-open", Exit: diag.ExitRefused, Message: fmt.Sprintf("folder %s: others may write to it", labs),
			Hint: "it must be this user's alone",
		}
	}
	return lockFile(ctx, filepath.Join(labs, ".lock"))
}

const (
	lockWaitMax  = 5 * time.Minute // the removal of a large lab takes some minutes
	lockLookEach = 50 * time.Millisecond
)

// lockFile waits for a lock, in a folder that is made where it is missing. It may be unlocked more than once.
func lockFile(ctx context.Context, path string) (unlock func() error, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	for until := time.Now().Add(lockWaitMax); ; {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return sync.OnceValue(f.Close), nil
		case !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EWOULDBLOCK):
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		case time.Now().After(until):
			return nil, errors.Join(&diag.Error{
				Code: "lab-locked", Exit: diag.ExitLocked, Message: fmt.Sprintf("lock %s: another program has held it for %v", path, lockWaitMax),
				Hint: "it makes or removes labs; fuser " + path + " names it",
			}, f.Close())
		}
		if wait.For(ctx, lockLookEach) != nil {
			return nil, errors.Join(context.Cause(ctx), f.Close())
		}
	}
}
