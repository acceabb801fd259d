package input_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// TestEveryReasonIsExplained reads the constants out of the source, because a
// reason that somebody adds must not depend on their remembering this test.
func TestEveryReasonIsExplained(t *testing.T) {
	t.Parallel()
	explained := map[input.Reason]bool{}
	for _, e := range input.Explanations() {
		if explained[e.Reason] {
			t.Errorf("%s is explained twice", e.Reason)
		}
		if e.Meaning == "" {
			t.Errorf("%s has an empty explanation", e.Reason)
		}
		explained[e.Reason] = true
	}
	declared := declaredReasons(t)
	for name, value := range declared {
		if name != string(value) {
			t.Errorf("the constant %s is spelled %q; people search for the word they see", name, value)
		}
		if !explained[value] {
			t.Errorf("%s is not explained", name)
		}
	}
	if len(explained) != len(declared) {
		t.Errorf("%d reasons are explained and %d declared", len(explained), len(declared))
	}
}

// declaredReasons are the constants of type Reason, by name.
func declaredReasons(t *testing.T) map[string]input.Reason {
	t.Helper()
	reasons := map[string]input.Reason{}
	for _, spec := range valueSpecs(t) {
		if !isReason(spec.Type) {
			continue
		}
		for i, name := range spec.Names {
			text, err := strconv.Unquote(spec.Values[i].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			reasons[name.Name] = input.Reason(text)
		}
	}
	if reasons["InStep"] != input.InStep {
		t.Fatalf("the constants were not found; found %v", reasons)
	}
	return reasons
}

// valueSpecs are the constants and variables of this package.
func valueSpecs(t *testing.T) []*ast.ValueSpec {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var specs []*ast.ValueSpec
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for node := range ast.Preorder(file) {
			if spec, ok := node.(*ast.ValueSpec); ok {
				specs = append(specs, spec)
			}
		}
	}
	return specs
}

func isReason(expr ast.Expr) bool {
	ident, ok := expr.(*ast.Ident)
	return ok && ident.Name == "Reason"
}
