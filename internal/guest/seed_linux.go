package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/wait"
)

const (
	seedMount = "/run/bragg-seed"
	seedEvery = 200 * time.Millisecond
)

// findSeed searches all disks for the seed until it finds one. An invalid seed ends the search at once: waiting would not
// fix it.
func (m *machine) findSeed(ctx context.Context) (Seed, error) {
	deadline := time.Now().Add(m.seedWithin)
	for said := false; ; {
		s, found, err := lookForSeed()
		if found || err != nil {
			return s, err
		}
		if time.Now().After(deadline) {
			return Seed{}, fmt.Errorf("no seed: none of the disks (%s) is labelled %q; attach one that \"bragg image seed\" made",
				firstWord(strings.Join(blockDevices(), " "), "none"), VolumeLabel)
		}
		if !said {
			m.say("waiting for a disk labelled %q", VolumeLabel)
			said = true
		}
		if wait.For(ctx, seedEvery) != nil {
			return Seed{}, ctx.Err()
		}
	}
}

func firstWord(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// lookForSeed searches once. found is false if no place has a seed.
func lookForSeed() (s Seed, found bool, err error) {
	if f, err := os.Open("/sys/firmware/qemu_fw_cfg/by_name/" + FirmwareSeed + "/raw"); err == nil {
		defer f.Close()
		s, err := ReadSeed(f)
		return s, true, wrap(err, "seed of the firmware")
	}
	for _, device := range blockDevices() {
		if !labelled(device) {
			continue
		}
		s, err := seedOn(device)
		return s, true, wrap(err, "seed on %s", device)
	}
	return Seed{}, false, nil
}

// labelled reports whether a device has an ISO 9660 file system with the label of seeds. ECMA-119, 8.4: the primary volume
// descriptor is sector 16, with "CD001" at byte 1 and the label in the 32 bytes from byte 40.
func labelled(device string) bool {
	f, err := os.Open(device)
	if err != nil {
		return false // a drive without a medium
	}
	defer f.Close()
	var sector [2048]byte
	if _, err := f.ReadAt(sector[:], 16*int64(len(sector))); err != nil {
		return false
	}
	return sector[0] == 1 && bytes.Equal(sector[1:6], []byte("CD001")) &&
		strings.EqualFold(strings.TrimRight(string(sector[40:72]), " \x00"), VolumeLabel)
}

func seedOn(device string) (s Seed, err error) {
	if err := os.MkdirAll(seedMount, 0o700); err != nil {
		return s, err
	}
	flags := uintptr(unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
	if err := unix.Mount(device, seedMount, "iso9660", flags, ""); err != nil {
		return s, fmt.Errorf("mount: %w", err)
	}
	defer func() {
		if e := unix.Unmount(seedMount, 0); e != nil && err == nil {
			err = fmt.Errorf("unmount: %w", e)
		}
	}()
	f, err := os.Open(seedMount + "/" + SeedFile)
	if errors.Is(err, os.ErrNotExist) {
		return s, fmt.Errorf("it holds no %s: make it with \"bragg image seed\"", SeedFile)
	}
	if err != nil {
		return s, err
	}
	defer f.Close()
	return ReadSeed(f)
}
