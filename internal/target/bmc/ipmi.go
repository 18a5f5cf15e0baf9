package bmc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/textio"
)

const (
	ipmiProgram        = "ipmitool"
	ipmiPort           = 623
	ipmiUserBytesMax   = 16 // of IPMI 2.0
	ipmiSecretBytesMax = 20
	ipmiOutputBytesMax = 64 << 10
	// ipmiEndWithin is how long ipmitool may take to end after it was killed.
	ipmiEndWithin = 500 * time.Millisecond
)

// ipmi uses IPMI 2.0 over LAN through ipmitool. It passes the password through a pipe that ipmitool reads as a file: the
// password is never in an argument, in the environment or in a file on disk, not even if this program is killed.
type ipmi struct {
	node      string
	host      string
	arguments []string // before the command
	secret    password
	// suite is the best cipher suite that ipmitool found, which takes seconds with some BMCs; "": none yet, or the target
	// file names one.
	suite string
	named bool // the target file names one
}

func newIPMI(node string, b target.BMC, user string, secret password) (*ipmi, error) {
	refuse := func(format string, args ...any) error {
		return fault(CodeCredential, node, "log in by IPMI", fmt.Errorf(format, args...))
	}
	host, port, err := hostPort(b.Address, ipmiPort)
	switch {
	case err != nil:
		return nil, fault(CodeUnreachable, node, "speak IPMI", fmt.Errorf("address %q: %w", b.Address, err))
	case len(user) > ipmiUserBytesMax:
		return nil, refuse("the user has more than %d bytes", ipmiUserBytesMax)
	case strings.HasPrefix(user, "-") || strings.ContainsFunc(user, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return nil, refuse(`the user begins with "-" or has control characters`)
	case len(secret.text) > ipmiSecretBytesMax:
		return nil, refuse("the password has more than %d bytes, which IPMI 2.0 cannot carry", ipmiSecretBytesMax)
	case strings.ContainsAny(secret.text, "\x00\r\n\t"):
		return nil, refuse("the password has a tab, a line feed or a NUL, which ipmitool cannot read")
	}
	i := &ipmi{node: node, host: host, secret: secret, named: b.CipherSuite != 0}
	i.arguments = []string{
		"-v", // without it, ipmitool does not distinguish a wrong password from no answer
		"-I", "lanplus", "-H", host, "-p", strconv.Itoa(port), "-U", user, "-f", "/dev/fd/3", "-L", "OPERATOR", "-N", "2", "-R", "2",
	}
	if b.CipherSuite != 0 {
		i.arguments = append(i.arguments, "-C", strconv.Itoa(b.CipherSuite))
	}
	return i, nil
}

func (i *ipmi) State(ctx context.Context) (target.PowerState, error) {
	const what = "read the power state"
	out, err := i.run(ctx, what, "chassis", "power", "status")
	if err != nil {
		return target.PowerUnknown, err
	}
	switch strings.TrimSpace(out) {
	case "Chassis Power is on":
		return target.PowerOn, nil
	case "Chassis Power is off":
		return target.PowerOff, nil
	}
	return target.PowerUnknown, fault(CodeGarbage, i.node, what, fmt.Errorf("ipmitool says %q", quoteOutside(out)))
}

func (i *ipmi) On(ctx context.Context) error  { return i.control(ctx, "power on", "on") }
func (i *ipmi) Off(ctx context.Context) error { return i.control(ctx, "cut the power", "off") }
func (i *ipmi) Soft(ctx context.Context) error {
	return i.control(ctx, "ask the operating system to stop", "soft")
}

func (i *ipmi) control(ctx context.Context, what, word string) error {
	out, err := i.run(ctx, what, "chassis", "power", word)
	if err == nil && !strings.HasPrefix(out, "Chassis Power Control: ") {
		return fault(CodeGarbage, i.node, what, fmt.Errorf("ipmitool says %q", quoteOutside(out)))
	}
	return err
}

var (
	guidLine   = regexp.MustCompile(`(?m)^System GUID\s*:\s*([0-9A-Fa-f-]{32,36})\s*$`)
	serialLine = regexp.MustCompile(`(?m)^\s*(?:Product|Board) Serial\s*:\s*(\S[^\n]{0,99}?)\s*$`)
)

// Identity reads the system's GUID and the serial numbers of FRU 0. A BMC may know only one of them, or neither. The serial
// number of the chassis is left out: a chassis may hold several machines.
func (i *ipmi) Identity(ctx context.Context) (Identity, error) {
	const what = "read the identity"
	guid, err := i.run(ctx, what, "mc", "guid")
	if err != nil && codeOf(err) != CodeRefused { // not when the BMC lacks the command
		return Identity{}, err
	}
	fru, err := i.run(ctx, what, "fru", "print", "0")
	if err != nil && codeOf(err) != CodeRefused {
		return Identity{}, err
	}
	return parseIdentity(guid, fru), nil
}

// parseIdentity parses the output of ipmitool for "mc guid" and "fru print 0".
func parseIdentity(guid, fru string) Identity {
	var id Identity
	if m := guidLine.FindStringSubmatch(guid); m != nil {
		id.UUID = m[1]
	}
	for _, m := range serialLine.FindAllStringSubmatch(fru, -1) {
		if !slices.Contains(id.Serials, m[1]) {
			id.Serials = append(id.Serials, m[1])
		}
	}
	return id
}

// run runs ipmitool once and returns its output. It never outlives ctx by more than ipmiEndWithin.
func (i *ipmi) run(ctx context.Context, what string, command ...string) (string, error) {
	path, err := exec.LookPath(ipmiProgram)
	if err != nil {
		return "", fault(CodeProgram, i.node, what, fmt.Errorf("the program %q is missing", ipmiProgram))
	}
	read, write, err := os.Pipe()
	if err != nil {
		return "", fault(CodeProgram, i.node, what, err)
	}
	defer read.Close()
	// A password of at most 20 bytes fits into the pipe buffer, so that the write does not block.
	_, err = write.WriteString(i.secret.text + "\n")
	if err = errors.Join(err, write.Close()); err != nil {
		return "", fault(CodeProgram, i.node, what, err)
	}
	out, messages := &textio.Head{MaxBytes: ipmiOutputBytesMax}, &textio.Head{MaxBytes: ipmiOutputBytesMax}
	arguments := slices.Clone(i.arguments)
	if i.suite != "" {
		arguments = append(arguments, "-C", i.suite)
	}
	cmd := exec.CommandContext(ctx, path, append(arguments, command...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=/"}
	cmd.ExtraFiles = []*os.File{read}
	cmd.Stdout, cmd.Stderr = out, messages
	cmd.WaitDelay = ipmiEndWithin
	target.Apart(cmd)
	err = cmd.Run()
	i.learn(messages.String(), err)
	switch {
	case ctx.Err() != nil:
		return "", ended(ctx, i.node, what)
	case err == nil:
		return out.String(), nil
	}
	var left *exec.ExitError
	if !errors.As(err, &left) {
		return "", fault(CodeProgram, i.node, what, err)
	}
	return out.String(), i.explain(what, messages.String())
}

var suiteLine = regexp.MustCompile(`(?m)^Using best available cipher suite (\d{1,2})$`)

// learn keeps the cipher suite of a successful session, and forgets it after a failed one.
func (i *ipmi) learn(messages string, err error) {
	switch m := suiteLine.FindStringSubmatch(messages); {
	case i.named:
	case err != nil:
		i.suite = ""
	case m != nil:
		i.suite = m[1]
	case strings.Contains(messages, "Unable to Get Channel Cipher Suites"):
		i.suite = "3" // which every BMC must support, and ipmitool uses then
	}
}

// ipmiMessages are messages of ipmitool 1.8.18 and 1.8.19 with their meanings. The first match counts.
var ipmiMessages = []struct{ text, code, reason string }{
	{"unauthorized name", CodeLogin, "it knows no such user"},
	{"RAKP 2 HMAC is invalid", CodeLogin, "the password is wrong"},
	{"invalid integrity check value", CodeLogin, "the password is wrong"},
	{"Unauthorized role or privilege level", CodeForbidden, "the user may not have the role Operator"},
	{"Set Session Privilege Level to OPERATOR failed: ", CodeForbidden, "the user may not have the role Operator"},
	// Match only with "failed": with -v ipmitool also tries commands that need a higher privilege, and logs their refusal.
	{"failed: Insufficient privilege level", CodeForbidden, "the user may not do this"},
	{"Invalid authentication algorithm", CodeLacks, "it does not offer this cipher suite"},
	{"Invalid integrity algorithm", CodeLacks, "it does not offer this cipher suite"},
	{"Invalid confidentiality algorithm", CodeLacks, "it does not offer this cipher suite"},
	{"No matching authentication payload", CodeLacks, "it does not offer this cipher suite"},
	{"Unsupported cipher suite", CodeLacks, "it does not offer this cipher suite"},
	{"no matching cipher suite", CodeLacks, "it does not offer this cipher suite"},
	{"Insufficient resources to create", CodeRefused, "it has too many sessions"},
	{"Address lookup for", CodeUnreachable, "its name is not known"},
	{"Could not open socket", CodeUnreachable, "its address cannot be reached"},
	{"Unable to establish", CodeUnreachable, "no session: no answer, or an invalid one"},
	{"Unable to get Chassis Power Status", CodeUnreachable, "the session broke"},
}

func (i *ipmi) explain(what, messages string) error {
	for _, m := range ipmiMessages {
		if strings.Contains(strings.ToLower(messages), strings.ToLower(m.text)) {
			return fault(m.code, i.node, what, errors.New(m.reason))
		}
	}
	lines := strings.Split(strings.TrimSpace(messages), "\n")
	last := lines[len(lines)-1]
	for _, line := range lines { // with -v, other lines follow the relevant one
		if strings.Contains(line, "Chassis Power") {
			last = line
		}
	}
	return fault(CodeRefused, i.node, what, fmt.Errorf("ipmitool says %q", quoteOutside(last)))
}
