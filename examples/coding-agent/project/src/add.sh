# Prints the sum of two numbers: sh src/add.sh 2 3
echo "$(($1 - $2))"
