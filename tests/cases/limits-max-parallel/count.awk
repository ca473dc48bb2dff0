{n += /[+]/ ? 1 : -1; if (n > most) most = n}
END {print most " at once"}
