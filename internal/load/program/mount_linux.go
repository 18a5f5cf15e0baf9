package program

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/diag"
)

// mountSpace is a mount namespace of one thread of this process. Its mounts are seen through folder, by this process and by programs that
// inherit it, and by no other. The kernel unmounts them when this process ends for any reason.
type mountSpace struct {
	calls  chan func()
	ended  chan struct{}
	folder *os.File // the room
	// itself is the namespace, for programs that need the paths.
	itself *os.File
}

func openMountSpace(room string) (*mountSpace, error) {
	if os.Geteuid() != 0 {
		return nil, &diag.Error{Code: "not-root", Exit: diag.ExitUnavailable, Message: "mount disks that are block devices: the agent is not root",
			Hint: "run the agent as root, use disks that are files, or an endpoint"}
	}
	s := &mountSpace{calls: make(chan func()), ended: make(chan struct{})}
	opened := make(chan error, 1)
	go func() {
		defer close(s.ended)
		onThread(true, func() { // which is never unlocked: it ends with its goroutine, and the namespace with it
			err := s.enter(room)
			opened <- err
			if err != nil {
				return
			}
			for call := range s.calls {
				call()
			}
		})
	}()
	if err := <-opened; err != nil {
		<-s.ended
		return nil, fmt.Errorf("make a mount namespace: %w", err)
	}
	return s, nil
}

func (s *mountSpace) enter(room string) (err error) {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if s.itself, err = os.Open("/proc/thread-self/ns/mnt"); err != nil {
		return err
	}
	if s.folder, err = os.Open(room); err != nil {
		_ = s.itself.Close()
	}
	return err
}

// do runs a function on the thread of the namespace.
func (s *mountSpace) do(f func() error) (err error) {
	done := make(chan struct{})
	s.calls <- func() {
		defer close(done)
		err = f()
	}
	<-done
	return err
}

// mountFlags are options that the kernel takes as bits.
var mountFlags = map[string]uintptr{
	"noatime": unix.MS_NOATIME, "relatime": unix.MS_RELATIME, "nodiratime": unix.MS_NODIRATIME, "lazytime": unix.MS_LAZYTIME, "nolazytime": 0,
}

// mount mounts an open device at a folder and returns what the kernel says of it.
func (s *mountSpace) mount(device *os.File, folder string, files FileSystem) (got string, err error) {
	flags, rest := uintptr(unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC), []string{}
	for _, option := range files.mountOptions() {
		if bit, known := mountFlags[option]; known {
			flags |= bit
		} else {
			rest = append(rest, option)
		}
	}
	err = s.do(func() error {
		if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", device.Fd()), folder, files.Type, flags, strings.Join(rest, ",")); err != nil {
			return err
		}
		got = mountedAs(folder)
		return nil
	})
	if errors.Is(err, unix.ENODEV) {
		return "", &diag.Error{Code: "file-system-unknown", Exit: diag.ExitUnavailable, Message: "the kernel does not have " + files.Type, Hint: "use another file_system"}
	}
	return got, err
}

// mountedAs returns type, size and options of the mount at a folder, as this thread has it.
func mountedAs(folder string) string {
	text, _ := os.ReadFile("/proc/thread-self/mountinfo")
	found := ""
	for line := range strings.Lines(string(text)) {
		// id parent major:minor root point options [field…] - type source options: proc_pid_mountinfo(5).
		before, after, _ := strings.Cut(line, " - ")
		point, about := strings.Fields(before), strings.Fields(after)
		if len(point) < 6 || len(about) < 3 || point[4] != mountinfoEscape.Replace(folder) {
			continue
		}
		found = fmt.Sprintf("%s on device %s, mounted with %s; %s", about[0], point[2], point[5], about[2])
	}
	var st unix.Statfs_t
	if unix.Statfs(folder, &st) == nil {
		found += fmt.Sprintf("; %d bytes in blocks of %d, %d free", int64(st.Blocks)*st.Bsize, st.Bsize, int64(st.Bfree)*st.Bsize)
	}
	return cmp.Or(found, "mounted")
}

var mountinfoEscape = strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`)

// Bounds of unmounting: of files that are just being closed.
const (
	unmountMax   = 10 * time.Second
	unmountEvery = 20 * time.Millisecond
)

// unmount writes everything to the device and releases it.
func (s *mountSpace) unmount(folder string) error {
	var err error
	for began := time.Now(); time.Since(began) < unmountMax; time.Sleep(unmountEvery) {
		if err = s.do(func() error { return unix.Unmount(folder, 0) }); !errors.Is(err, unix.EBUSY) {
			return err
		}
	}
	return errors.Join(err, s.do(func() error { return unix.Unmount(folder, unix.MNT_DETACH) }))
}

func (s *mountSpace) close() {
	close(s.calls)
	<-s.ended
	_, _ = s.folder.Close(), s.itself.Close()
}

// join moves the calling thread to a copy of a namespace. It must not share its folders with other threads, as after unshare.
func join(namespace *os.File) error {
	if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNS); err != nil {
		return err
	}
	return unix.Unshare(unix.CLONE_NEWNS)
}
