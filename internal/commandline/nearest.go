package commandline

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// maxHints limits how many names a hint offers.
const maxHints = 3

// Nearest returns the candidates that a misspelt word may mean: those that need the fewest
// changes, or that begin with the word. It returns at most three, and none when no candidate is
// near.
func Nearest(word string, candidates []string) []string {
	if word == "" {
		return nil
	}
	// Cobra measures the distance for its own commands, so the candidates become commands.
	list := &cobra.Command{}
	for _, name := range candidates {
		list.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	// In a word of three letters, two changes make another word.
	most := 2
	if utf8.RuneCountInString(word) <= 3 {
		most = 1
	}
	for distance := 1; distance <= most; distance++ {
		list.SuggestionsMinimumDistance = distance
		if near := list.SuggestionsFor(word); len(near) > 0 {
			return near[:min(len(near), maxHints)]
		}
	}
	// Letters that changed places count as two changes.
	var swapped []string
	for _, name := range candidates {
		if letters(name) == letters(word) && len(swapped) < maxHints {
			swapped = append(swapped, name)
		}
	}
	return swapped
}

// letters are those of a word, in alphabetical order.
func letters(word string) string {
	return string(slices.Sorted(slices.Values([]rune(strings.ToLower(word)))))
}

// Hint follows a message about a misspelt word: "; did you mean a or b?". It is empty when no
// candidate is near. The prefix precedes each name.
func Hint(word, prefix string, candidates []string) string {
	near := Nearest(word, candidates)
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + prefix + strings.Join(near, " or "+prefix) + "?"
}
