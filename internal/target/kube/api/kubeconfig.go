package api

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/textio"
)

// contextsMax bounds the contexts that a message names.
const contextsMax = 8

// explainConfig says which kubeconfig was read and what is missing in it. The library reports a missing file, an empty file and a
// missing current context as one error, and suggests an environment variable that Bragg does not read.
func explainConfig(rules *clientcmd.ClientConfigLoadingRules, wanted string, err error) error {
	e := &diag.Error{
		Code: "kube-config", Exit: diag.ExitData, Message: "read the kubeconfig",
		Hint: "options kubeconfig and context of the target file select it; kubectl config view shows what it has",
	}
	files := rules.GetLoadingPrecedence()
	if rules.ExplicitPath != "" {
		files = []string{rules.ExplicitPath}
	}
	raw, loadErr := rules.Load()
	if loadErr != nil {
		e.Err = loadErr
		return e
	}
	contexts := slices.Sorted(maps.Keys(raw.Contexts))
	name := wanted
	if name == "" {
		name = raw.CurrentContext
	}
	switch _, known := raw.Contexts[name]; {
	case len(raw.Clusters) == 0 && len(contexts) == 0:
		e.Message = "find a kubeconfig: none at " + strings.Join(files, ", ")
		e.Hint = "set KUBECONFIG or the option kubeconfig of the target file, or name endpoint and the credential \"platform\""
	case name == "":
		e.Message = "read the kubeconfig: it has no current context"
		e.Hint = "write options: {context: NAME} into the target file; contexts: " + textio.Few(contexts, contextsMax)
	case !known:
		e.Message = fmt.Sprintf("read the kubeconfig: context %q does not exist", name)
		e.Hint = "contexts: " + textio.Few(contexts, contextsMax)
		if near := diag.Nearest(name, contexts); near != "" {
			e.Hint = fmt.Sprintf("did you mean %q?", near)
		}
	default:
		e.Err = err
	}
	return e
}
