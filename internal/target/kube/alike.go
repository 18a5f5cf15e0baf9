package kube

import (
	"fmt"
	"regexp"
	"strings"
)

// errorsMax bounds how many VMs one error names: a cluster refuses a thousand pods for one reason.
const errorsMax = 8

// few returns the first of errors that differ in names and numbers only, and says how many more VMs have each.
func few(errs []error) []error {
	var list []error
	index, alike, left := map[string]int{}, []int{}, 0
	for _, err := range errs {
		if err == nil {
			continue
		}
		key := reasonOf(err)
		i, known := index[key]
		switch {
		case known:
			alike[i]++
		case len(list) < errorsMax:
			index[key] = len(list)
			list, alike = append(list, err), append(alike, 0)
		default:
			left++
		}
	}
	for i, n := range alike {
		if n > 0 {
			list[i] = fmt.Errorf("%w (and %s alike)", list[i], more(n))
		}
	}
	if left > 0 {
		list = append(list, fmt.Errorf("and %s", more(left)))
	}
	return list
}

func more(n int) string {
	if n == 1 {
		return "1 more VM"
	}
	return fmt.Sprintf("%d more VMs", n)
}

var (
	namedVM = regexp.MustCompile(`vm "([^"]+)"`)
	number  = regexp.MustCompile(`[0-9]+`)
)

// reasonOf is the text of an error without the VM: neither its name nor the words that contain it, such as claims, nor numbers, such as
// ports and addresses.
func reasonOf(err error) string {
	text := strings.ToLower(err.Error())
	if m := namedVM.FindStringSubmatch(text); m != nil {
		name := regexp.MustCompile(`[^\s"]*` + regexp.QuoteMeta(m[1]) + `[^\s"]*`)
		text = name.ReplaceAllString(text, "vm")
	}
	return number.ReplaceAllString(text, "#")
}
