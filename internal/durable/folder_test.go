//go:build unix

package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/braggdev/bragg/internal/durable"
)

// TestFolder: what is not a plain file below plain folders is neither opened, followed nor filled. Names that lead out are refused.
func TestFolder(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	victim := filepath.Join(outside, "victim")
	at := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(os.WriteFile(victim, []byte("kept"), 0o600), os.WriteFile(at("plain"), nil, 0o600),
		os.Symlink(victim, at("link")), os.Symlink("plain", at("inside")), os.Symlink("fresh", at("dangling")), os.Link(victim, at("second name")),
		syscall.Mkfifo(at("pipe"), 0o600), os.Mkdir(at("folder"), 0o700), os.Symlink(outside, at("linked folder")), os.Symlink("folder", at("inner")))
	if err != nil {
		t.Fatal(err)
	}
	f, err := durable.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, name := range []string{
		"link", "inside", "dangling", "second name", "pipe", "folder", "linked folder/victim", "linked folder/new", "inner/new", "plain/new",
	} {
		for _, flag := range []int{os.O_WRONLY, os.O_RDWR | os.O_CREATE | os.O_APPEND} {
			if file, err := f.Open(name, flag, 0o600); !errors.Is(err, durable.ErrForeign) {
				t.Errorf("open %s: %v", name, err)
				_ = file.Close()
			}
		}
		below := name + "/below"
		if err := f.MakeAll(below, 0o700); name != "folder" && err == nil {
			t.Errorf("make %s", below)
		}
		if name, file, err := f.CreateTemp(below); name != "" && filepath.Dir(name) != "folder" {
			t.Errorf("create %s: %v", name, err)
			_ = file.Close()
		}
	}
	for _, name := range []string{"../victim", "/tmp/x", "folder/../../victim"} {
		if _, err := f.Open(name, os.O_WRONLY|os.O_CREATE, 0o600); err == nil {
			t.Errorf("%s leads out", name)
		}
	}
	if _, err := f.Open("absent", os.O_WRONLY, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := f.Open("plain", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	if err := f.Rename("plain", "folder"); !errors.Is(err, durable.ErrForeign) {
		t.Errorf("a folder is replaced: %v", err)
	}
	if err := errors.Join(f.Rename("plain", "link"), f.Remove("second name"), f.RemoveAll("linked folder"), f.Remove("absent")); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "kept" {
		t.Errorf("the victim: %q, %v", text, err)
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("outside: %v", entries)
	}
	if _, err := os.Lstat(at("fresh")); err == nil {
		t.Error("a dangling link was filled")
	}
}

// TestCheckTree: a library may write where only folders and plain files are.
func TestCheckTree(t *testing.T) {
	dir := t.TempDir()
	err := errors.Join(os.MkdirAll(filepath.Join(dir, "store", "a", "b"), 0o700), os.WriteFile(filepath.Join(dir, "store", "a", "file"), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if err := durable.CheckTree(dir, "store"); err != nil {
		t.Error(err)
	}
	if err := os.Symlink("/dev/null", filepath.Join(dir, "store", "a", "b", "link")); err != nil {
		t.Fatal(err)
	}
	if err := durable.CheckTree(dir, "store"); !errors.Is(err, durable.ErrForeign) {
		t.Error(err)
	}
}

// TestFolderIsAPipe: a pipe in the place of a folder is an error, and nothing waits for its writer.
func TestFolderIsAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := durable.OpenFolder(pipe); !errors.Is(err, syscall.ENOTDIR) || err.Error() != "open "+pipe+": not a directory" {
		t.Error(err)
	}
	if _, err := durable.LockDir(pipe, syscall.LOCK_SH); !errors.Is(err, syscall.ENOTDIR) {
		t.Error(err)
	}
	if _, err := durable.OpenRoot(""); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestLockOfOthers: who may read a folder can hold its lock forever.
func TestLockOfOthers(t *testing.T) {
	dir := t.TempDir()
	release, err := durable.LockDir(dir, syscall.LOCK_EX)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := durable.LockDir(dir, syscall.LOCK_SH); !errors.Is(err, durable.ErrLocked) {
		t.Error(err)
	}
	release()
	again, err := durable.LockDir(dir, syscall.LOCK_SH)
	if err != nil {
		t.Fatal(err)
	}
	again()
}

// TestFolderOfSeveral: of several that create a file at the same time, all open the same one.
func TestFolderOfSeveral(t *testing.T) {
	f, err := durable.OpenFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for round := range 200 {
		name := strconv.Itoa(round)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				file, err := f.Open(name, os.O_RDWR|os.O_CREATE, 0o600)
				if err != nil {
					t.Error(err)
					return
				}
				_ = file.Close()
			})
		}
		all.Wait()
	}
}
