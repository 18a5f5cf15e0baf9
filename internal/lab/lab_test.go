package lab

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lab/cable"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]Options{
		"":                          {Labs: "/x"},
		"9 hosts":                   {Labs: "/x", Hosts: 9},
		"-1 hosts":                  {Labs: "/x", Hosts: -1},
		"hosts need libvirt or ssh": {Labs: "/x", NoLibvirt: true},
		`lab "../etc"`:              {Labs: "/x", Name: "../etc"},
		`lab "-rf"`:                 {Labs: "/x", Name: "-rf"},
		`lab "."`:                   {Labs: "/x", Name: "."},
		`template "a/b"`:            {Labs: "/x", Templates: map[string]string{"a/b": "/y"}},
		`folder ""`:                 {},
		`folder "x"`:                {Labs: "x"},
		`folder "/x/"`:              {Labs: "/x/"},
		`folder "/x/../y"`:          {Labs: "/x/../y"},
		`folder "/x y"`:             {Labs: "/x y"},
		"folder \"/x\\ny\"":         {Labs: "/x\ny"},
		`folder "/x'y"`:             {Labs: "/x'y"},
		"too long":                  {Labs: "/" + strings.Repeat("x", 70)},
		`lab "A"; 10 hosts:`:        {Labs: "/x", Name: "A", Hosts: 10},
	} {
		err := o.Validate()
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || diag.ExitCode(err) != diag.ExitUsage) {
			t.Errorf("%+v: %v, want %s", o, err, want)
		}
	}
	o := Options{Labs: "/x"}
	if err := o.Validate(); err != nil || o.Name != "default" || o.Hosts != 2 {
		t.Errorf("defaults: %+v, %v", o, err)
	}
}

// A subnet that is taken overlaps none that is in use, and there is one as long as one is free.
func TestFreeSubnet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var used []netip.Prefix
		for range rapid.IntRange(0, 80).Draw(t, "networks") {
			a := netip.AddrFrom4([4]byte{10, byte(rapid.IntRange(212, 214).Draw(t, "second")), rapid.Byte().Draw(t, "third"), rapid.Byte().Draw(t, "fourth")})
			used = append(used, netip.PrefixFrom(a, rapid.IntRange(17, 32).Draw(t, "bits")).Masked())
		}
		free := 0
		for n := range 64 {
			candidate := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 213, byte(n * 4), 0}), 22)
			taken := false
			for _, u := range used {
				taken = taken || u.Overlaps(candidate)
			}
			if !taken {
				free++
			}
		}
		got, err := freeSubnet(used)
		if (err == nil) != (free > 0) {
			t.Fatalf("%d are free: %v", free, err)
		}
		for _, u := range used {
			if err == nil && u.Overlaps(got) {
				t.Fatalf("%s overlaps %s", got, u)
			}
		}
	})
	if _, err := freeSubnet([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}); diag.ExitCode(err) != diag.ExitUnavailable {
		t.Errorf("all are in use: %v", err)
	}
}

func TestAddressesOfALab(t *testing.T) {
	t.Parallel()
	subnet := netip.MustParsePrefix("10.213.8.0/22")
	seen := map[netip.Addr]bool{}
	numbers := []int{controllerAddress, switchAddress}
	for i := range hostsMax {
		numbers = append(numbers, hostAddress+i, bmcAddress+i)
	}
	for _, n := range numbers {
		a := cable.Nth(subnet, n)
		if !subnet.Contains(a) || seen[a] || n >= dhcpAddress {
			t.Errorf("%d is %s", n, a)
		}
		seen[a] = true
	}
	if last := cable.Nth(subnet, guestAddressLast); last.String() != "10.213.11.250" || !subnet.Contains(last) {
		t.Errorf("the last guest is %s", last)
	}
}

func TestLabsAreFound(t *testing.T) {
	t.Parallel()
	labs := t.TempDir()
	l := &Lab{Format: stateFormat, ID: "01234567", Name: "one", Folder: Folder{Dir: filepath.Join(labs, "one")}, Hosts: []Host{{Name: "host-1"}, {Name: "host-2"}}}
	if err := errors.Join(os.Mkdir(l.Dir, 0o700), os.Mkdir(filepath.Join(labs, "other"), 0o700), l.save()); err != nil {
		t.Fatal(err)
	}
	all, err := Labs(labs)
	if err != nil || len(all) != 1 || all[0].ID != l.ID {
		t.Errorf("%+v, %v", all, err)
	}
	if all, err := Labs(filepath.Join(labs, "nowhere")); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	for name, code := range map[string]int{"one": diag.ExitUnavailable, "two": diag.ExitUnavailable, "-x": diag.ExitUsage} {
		if _, err := Find(labs, name); diag.ExitCode(err) != code {
			t.Errorf("find %s: %v", name, err)
		}
	}
	if h, err := l.Host("host-2"); err != nil || h.Name != "host-2" {
		t.Error(h, err)
	}
	var userErr *diag.Error
	if _, err := l.Host("host-3"); !errors.As(err, &userErr) || !strings.Contains(userErr.Hint, "did you mean") {
		t.Errorf("%v", err)
	}
}

func TestCopyTree(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "to")
	err := errors.Join(
		os.MkdirAll(filepath.Join(from, "a", "b"), 0o755), os.WriteFile(filepath.Join(from, "a", "b", "file"), []byte("x"), 0o644),
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := copyTree(from, to); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(to, "a", "b", "file")); err != nil || string(text) != "x" {
		t.Errorf("%q, %v", text, err)
	}
	if err := os.Symlink("/etc/shadow", filepath.Join(from, "link")); err != nil {
		t.Fatal(err)
	}
	if err := copyTree(from, to+"2"); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a link was followed: %v", err)
	}
}
