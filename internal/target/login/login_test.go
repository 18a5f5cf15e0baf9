package login

import (
	"testing"

	"golang.org/x/crypto/ssh"
)

// Keys of one run differ by purpose and stay the same, and no two runs share one.
func TestKeyring(t *testing.T) {
	k := NewKeyring()
	seen := map[string]bool{}
	for _, derive := range []func() (string, string, error){
		k.Login, func() (string, string, error) { return k.Host("a") }, func() (string, string, error) { return k.Host("b") }, NewKeyring().Login,
	} {
		private, public, err := derive()
		if err != nil {
			t.Fatal(err)
		}
		signer, err := ssh.ParsePrivateKey([]byte(private))
		if err != nil {
			t.Fatal(err)
		}
		if line := string(ssh.MarshalAuthorizedKey(signer.PublicKey())); line != public+"\n" || seen[public] {
			t.Errorf("public key %q of %q, seen before: %v", public, line, seen[public])
		}
		if seen[public] = true; len(seen) == 1 {
			if _, again, _ := k.Login(); again != public {
				t.Error("the key changes")
			}
		}
	}
}
