package bmc

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/testreq"
)

// patient are options for ipmitool, which takes a while to give up.
var patient = Options{Poll: 50 * time.Millisecond, Again: 50 * time.Millisecond, Settle: 100 * time.Millisecond, Late: time.Millisecond,
	Attempt: time.Minute, ReadTimeout: 3 * time.Minute, Timeout: 5 * time.Minute}

// up waits until the simulator answers.
func (s *simulator) up() *Switch {
	s.t.Helper()
	sw := openQuick(s.t, s.config(s.port), patient)
	if _, err := sw.State(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	return sw
}

// ipmitool against ipmi_sim: both ways, twice, with what it says it is.
func TestIPMI(t *testing.T) {
	sim := newSimulator(t)
	s := sim.up()
	id, err := s.Identity(t.Context())
	if m, by := id.Compare(Identity{UUID: uuidDMI}); err != nil || m != Same || by != "UUID" || len(id.Serials) != 1 || id.Serials[0] != "7XK0Q13" {
		t.Errorf("got %v, %v", id, err)
	}
	for i, act := range []func(context.Context) error{s.Off, s.Off, s.On, s.On, s.Soft, s.On} {
		if err := act(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := target.PowerState(map[bool]string{true: "on", false: "off"}[i == 2 || i == 3 || i == 5])
		if state, err := s.State(t.Context()); err != nil || state != want || sim.on() != (want == target.PowerOn) {
			t.Errorf("%d: got %s, %v, want %s; really on: %v", i, state, err, want, sim.on())
		}
	}
	if n := sim.commands(); n != 4 {
		t.Errorf("%d commands, want 4", n)
	}
}

func TestIPMIMisbehaviour(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for ipmitool to give up")
	}
	short := patient
	short.Timeout, short.ReadTimeout = 3*time.Second, 3*time.Second
	steady := short
	steady.Timeout, steady.Settle = 10*time.Second, 5*time.Second
	for name, c := range map[string]struct {
		change func(*simulator, *way, *target.Config)
		o      Options
		code   string // "": it succeeds
		says   string
	}{
		"slow":              {func(_ *simulator, w *way, _ *target.Config) { w.delay = 30 * time.Millisecond }, patient, "", ""},
		"answers twice":     {func(_ *simulator, w *way, _ *target.Config) { w.double = true }, patient, "", ""},
		"loses the first":   {func(_ *simulator, w *way, _ *target.Config) { w.drop = 3 }, patient, "", ""},
		"ok without effect": {func(s *simulator, _ *way, _ *target.Config) { s.write("deaf", "") }, steady, CodeNoEffect, "it is on"},
		"hang":              {func(_ *simulator, w *way, _ *target.Config) { w.drop = -1 }, short, CodeUnreachable, "not known"},
		"garbage":           {func(_ *simulator, w *way, _ *target.Config) { w.spoil = 1 }, short, CodeUnreachable, "not known"},
		"no such user": {func(_ *simulator, _ *way, c *target.Config) {
			c.Credentials["bmc"] = target.Credential{User: "unknown", Secret: c.Credentials["bmc"].Secret}
		}, patient, CodeLogin, "no such user"},
		"another suite": {func(_ *simulator, _ *way, c *target.Config) { c.Nodes[0].BMC.CipherSuite = 17 }, patient, CodeLacks, "cipher suite"},
		"no such name":  {func(_ *simulator, _ *way, c *target.Config) { c.Nodes[0].BMC.Address = "bmc.invalid" }, short, CodeUnreachable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sim := newSimulator(t)
			sim.up()
			wire := newWay(t, sim.port)
			config := sim.config(wire.Port)
			wire.set(func(w *way) { c.change(sim, w, &config) })
			err := openQuick(t, config, c.o).Off(t.Context())
			if codeOf(err) != c.code || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q that says %q", err, c.code, c.says)
			}
			if sim.on() == (err == nil) {
				t.Errorf("got %v and the node is on: %v", err, sim.on())
			}
			if n := sim.commands(); n > triesMax {
				t.Errorf("%d commands", n)
			}
		})
	}
}

func TestIPMIWrongPassword(t *testing.T) {
	sim := newSimulator(t)
	sim.up()
	c := sim.config(sim.port)
	c.Credentials["bmc"] = target.Credential{User: testUser, Secret: secretFile(t, "hunter3")}
	err := openQuick(t, c, patient).Off(t.Context())
	if codeOf(err) != CodeLogin || diag.ExitCode(err) != diag.ExitUnavailable || !strings.Contains(err.Error(), "the password is wrong") || !sim.on() {
		t.Errorf("got %v", err)
	}
	if text := fmt.Sprintf("%v %+v", err, err); strings.Contains(text, "hunter3") {
		t.Errorf("the error shows the password: %s", text)
	}
}

// A password is seen in no argument and in no environment of the programs that are started, and in no file.
func TestIPMIPasswordIsNowhere(t *testing.T) {
	const canary = "canary-7f3a91"
	testreq.Program(t, ipmiProgram)
	way := newWay(t, freePort(t)) // no server answers, so ipmitool keeps waiting
	c := (&simulator{t: t}).config(way.Port)
	c.Credentials["bmc"] = target.Credential{User: testUser, Secret: secretFile(t, canary)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	s := openQuick(t, c, patient)
	go func() {
		_, err := s.State(ctx)
		done <- err
	}()
	address := fmt.Sprint(way.Port)
	for until := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		running := testreq.ProcessesNaming(t, address)
		if len(running) > 0 && strings.Contains(running[0], "lanplus") {
			break
		}
		if time.Now().After(until) {
			t.Fatal("ipmitool was not started")
		}
	}
	if found := testreq.ProcessesNaming(t, canary); len(found) > 0 {
		t.Errorf("the password is in %v", found)
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("no BMC answered, but a state was returned")
	}
	if left := testreq.ProcessesNaming(t, address); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A hanging ipmitool is killed, and a missing one is reported with a hint.
func TestIPMIProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	folder := t.TempDir()
	t.Setenv("PATH", folder)
	c := (&simulator{t: t}).config(623)
	err := openQuick(t, c, patient).Off(t.Context())
	if codeOf(err) != CodeProgram || diag.ExitCode(err) != diag.ExitUnavailable {
		t.Errorf("got %v", err)
	}
	for name, script := range map[string]struct{ text, code string }{
		"hangs":      {"#!/bin/sh\nexec /bin/sleep 1000\n", CodeUnreachable},
		"with child": {"#!/bin/sh\n/bin/sleep 1000 & echo $! > " + folder + "/child; wait\n", CodeUnreachable},
		"floods":     {"#!/bin/sh\nexec /usr/bin/yes\n", CodeUnreachable},
		"garbage":    {"#!/bin/sh\necho 'Chassis Power is on fire'\n", CodeGarbage},
		"two lines":  {"#!/bin/sh\necho 'Chassis Power is on'; echo 'Chassis Power is off'\n", CodeGarbage},
		"silent":     {"#!/bin/sh\nexit 0\n", CodeGarbage},
		"fails":      {"#!/bin/sh\necho 'Get Chassis Power Status failed: \x1b[31mNode busy' >&2; exit 1\n", CodeRefused},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(folder, ipmiProgram), []byte(script.text), 0o700); err != nil {
				t.Fatal(err)
			}
			o := patient
			o.Attempt, o.ReadTimeout = 2*time.Second, 3*time.Second
			state, err := openQuick(t, c, o).State(t.Context())
			if codeOf(err) != script.code || state != target.PowerUnknown || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("got %s, %v, want %s", state, err, script.code)
			}
			if child, err := os.ReadFile(filepath.Join(folder, "child")); err == nil {
				_ = exec.Command("/bin/kill", strings.TrimSpace(string(child))).Run()
				_ = os.Remove(filepath.Join(folder, "child"))
			}
		})
	}
}

// What cannot reach ipmitool as it was meant is refused before it is started.
func TestIPMIArguments(t *testing.T) {
	for name, c := range map[string]struct{ address, user, secret string }{
		"address like an option": {"-oX", testUser, testPassword},
		"address with a blank":   {"a b", testUser, testPassword},
		"bad port":               {"10.0.0.1:99999", testUser, testPassword},
		"user like an option":    {"10.0.0.1", "-P", testPassword},
		"user too long":          {"10.0.0.1", strings.Repeat("u", 17), testPassword},
		"user with a line feed":  {"10.0.0.1", "a\nb", testPassword},
		"no user":                {"10.0.0.1", "", testPassword},
		"no password":            {"10.0.0.1", testUser, ""},
		"password too long":      {"10.0.0.1", testUser, strings.Repeat("p", 21)},
		"password with a tab":    {"10.0.0.1", testUser, "a\tb"},
		"password with a NUL":    {"10.0.0.1", testUser, "a\x00b"},
	} {
		config := target.Config{Credentials: map[string]target.Credential{"bmc": {User: c.user, Secret: secretFile(t, c.secret)}}}
		_, err := Open(t.Context(), "left", config, target.BMC{Protocol: target.IPMI, Address: c.address, Credential: "bmc"})
		if err == nil || diag.ExitCode(err) != diag.ExitUnavailable || c.secret != "" && strings.Contains(err.Error(), c.secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
	config := (&simulator{t: t}).config(623)
	for address, want := range map[string]string{
		"10.0.0.1": "-H 10.0.0.1 -p 623", "fd00::1": "-H fd00::1 -p 623", "[fd00::1]:6230": "-H fd00::1 -p 6230", "bmc.lab:1": "-H bmc.lab -p 1",
		"[fd00::1]": "-H fd00::1 -p 623",
	} {
		b := *config.Nodes[0].BMC
		b.Address = address
		c, err := dial(t.Context(), "left", config, b)
		if err != nil || !strings.Contains(strings.Join(c.(*ipmi).arguments, " "), want) {
			t.Errorf("%s: %v, want %s", address, err, want)
		}
	}
}

// The best cipher suite is looked for once, and again after a session that did not come about.
func TestIPMISuiteIsLearned(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	sim := newSimulator(t)
	sim.up()
	c := sim.config(sim.port)
	c.Nodes[0].BMC.CipherSuite = 0
	controller, err := dial(t.Context(), "left", c, *c.Nodes[0].BMC)
	if err != nil {
		t.Fatal(err)
	}
	i := controller.(*ipmi)
	for range 2 { // the second time it is known
		if state, err := i.State(t.Context()); err != nil || state != target.PowerOn || i.suite != "3" {
			t.Errorf("got %s, %v with suite %q", state, err, i.suite)
		}
	}
	i.learn("Error: Unable to establish IPMI v2 / RMCP+ session", context.Canceled)
	if i.suite != "" {
		t.Errorf("suite %q is kept", i.suite)
	}
	i.learn("x\nUsing best available cipher suite 17\n\ny", nil)
	if i.suite != "17" {
		t.Errorf("suite %q", i.suite)
	}
	i.suite, i.named = "", true
	if i.learn("Using best available cipher suite 3\n", nil); i.suite != "" {
		t.Error("the suite of the target file is replaced")
	}
}

// Messages of ipmitool that this machine's simulator does not bring about, from its source.
func TestIPMIMessages(t *testing.T) {
	i := &ipmi{node: "left"}
	for message, want := range map[string]string{
		"RAKP 2 message indicates an error : unauthorized role or privilege level requested":                            CodeForbidden,
		"Set Session Privilege Level to OPERATOR failed: Requested level exceeds limit":                                 CodeForbidden,
		"Set Session Privilege Level to OPERATOR failed\nError: Unable to establish IPMI v2 / RMCP+ session":            CodeUnreachable,
		"Set Chassis Power Control to Down/Off failed: Insufficient privilege level":                                    CodeForbidden,
		"Invalid completion code received: Insufficient privilege level\nGet Chassis Power Status failed: Node busy\nx": CodeRefused,
		"Error in open session response message : insufficient resources to create a session":                           CodeRefused,
		"Error in open session response message : no matching cipher suite with security algorithms":                    CodeLacks,
		"RAKP 4 message indicates an error : invalid integrity check value":                                             CodeLogin,
		"Address lookup for bmc.invalid failed\nError: Unable to establish IPMI v2 / RMCP+ session":                     CodeUnreachable,
		"": CodeRefused,
	} {
		if err := i.explain("cut", message); codeOf(err) != want {
			t.Errorf("%q: got %v, want %s", message, err, want)
		}
	}
}

// Whatever ipmitool prints, reading it ends with what is there.
func FuzzParseIdentity(f *testing.F) {
	f.Add("System GUID  : 4c4c4544-0058-4b10-8030-b7c04f513133\nTimestamp : 1\n", " Product Serial        : 7XK0Q13\n Board Serial : \n")
	f.Add("System GUID  : \n", " Product Serial : a\x1b[2J\n")
	f.Fuzz(func(t *testing.T, guid, fru string) {
		id := parseIdentity(guid, fru)
		if m, _ := id.Compare(id); (m == Same) != id.Known() {
			t.Errorf("%v is not itself", id)
		}
		for _, s := range id.Serials {
			if s == "" || strings.Contains(s, "\n") || !strings.Contains(fru, s) {
				t.Errorf("serial %q of %q", s, fru)
			}
		}
	})
}
